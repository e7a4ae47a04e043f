"""Write a backlog of millions of jobs with set-based statements."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import psycopg

_FILL = """
    with new as materialized (
        -- Ids in a row are written several times as fast as random ones.
        select w.org_id, (f.head || lpad(to_hex(row_number() over ()), 12, '0'))::uuid as job_id
        from unnest(%(orgs)s::uuid[], %(sizes)s::integer[]) w(org_id, size)
        cross join generate_series(1, w.size)
        cross join (select left(duly.uuid7_floor(now())::text, 24) as head) f
    ), record as (
        insert into duly.job_records (
            org_id, job_id, result_id, job_type, category, queue, priority, max_attempts,
            actor_type, actor_id, request_id, correlation_id, idempotency_key, payload, payload_hash, policy,
            run_at, created_at)
        select org_id, job_id, job_id, 'step.take', 'default', 'q:default', 0, 5, 'system', 'backlog',
               'r', 'r', job_id::text, '{"n": 1}', 'h', '{}', now(), now()
        from new
    ), event as (
        insert into duly.event_log (
            org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
        select org_id, job_id, 1, 'job.queued', 'queued', 0, now(), 'system', 'backlog' from new
    )
    insert into duly.ready (queue, org_id, rank, job_id) select 'q:default', org_id, 0, job_id from new
"""


def fill(sql: psycopg.Connection, sizes: Mapping[uuid.UUID, int]) -> None:
    """Create this many queued jobs for each org."""
    for org in sizes:
        sql.execute(
            "insert into duly.organizations (org_id, name) values (%s, 'x') on conflict do nothing", [org]
        )
    sql.execute(_FILL, {"orgs": list(sizes), "sizes": list(sizes.values())})
    sql.execute("vacuum analyze duly.ready")
