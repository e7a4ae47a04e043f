"""Helpers for tests of endpoints and the delivery log: an operator, and deliveries in every status."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import psycopg

from duly import Actor
from duly.features.webhooks.models import Endpoint
from duly.jobs.enqueue_options import new_ids

WHY: dict[str, Any] = {"actor": Actor.operator("anna"), "reason": "because"}
URL = "https://hooks.example.com/T0K3N?channel=jobs"
HOUR = timedelta(hours=1)


def audited(sql: psycopg.Connection) -> list[tuple[str, dict[str, Any]]]:
    """Return the audit entries of the operator."""
    query = """select action, detail from duly.audit_entries
               where target_type = 'webhook' and reason = 'because' and actor_id = 'anna' order by entry_id"""
    return sql.execute(query).fetchall()


def write(
    sql: psycopg.Connection, endpoint: Endpoint, *statuses: str, event_type: str = "job.completed"
) -> uuid.UUID:
    """Write deliveries about one job with these statuses; return the job."""
    job = uuid.UUID(next(new_ids(1))[0])
    for seq, status in enumerate(statuses, 1):
        sql.execute(
            """insert into duly.webhook_deliveries
                   (org_id, endpoint_id, job_id, event_seq, event_type, status, tries, due_at,
                    ended_at, try_log)
               values (%s, %s, %s, %s, %s, %s, 10, duly.now() + interval '1 hour',
                       case when %s <> 'pending' then duly.now() end, '[{"error": "HTTP 500"}]')""",
            [endpoint.org_id, endpoint.endpoint_id, job, seq, event_type, status, status],
        )
    return job


def state(sql: psycopg.Connection, job: uuid.UUID) -> list[tuple[Any, ...]]:
    """Return status, attempts, whether due, whether it follows, and log size of each delivery of a job."""
    query = """select status, tries, due_at <= duly.now(), follows, jsonb_array_length(try_log)
               from duly.webhook_deliveries where job_id = %s order by event_seq"""
    return sql.execute(query, [job]).fetchall()
