"""Views contain every documented field, and only rows of the tenant."""

from __future__ import annotations

import uuid

import psycopg
import pytest

from duly import Duly
from duly.core.job import JobEvent, JobSnapshot
from duly.db.database import Database

FIELDS = {
    "jobs": """
        job_id org_id requested_by_user_id api_key_id status priority_class request_payload_hash
        request_payload_ref
        progress_percent partial_count error_count result_id queued_at started_at finished_at updated_at
        cancel_requested_at canceled_at canceled_by cancel_reason error_code error_message failed_at retryable
        job_type project_id actor_type actor_id request_id correlation_id idempotency_key created_at payload
        scheduled_for traceparent trace_id priority attempts max_attempts run_at result
        subject_id attempt completed_at outcome run_identity_hash summary_counts failure_summary context
        replay_of
    """,
    "job_events": """
        event_id job_id event_type event_seq occurred_at actor_type payload_json trace_id request_id
        org_id project_id actor_id correlation_id job_type attempt status result_id
    """,
    "job_results": """
        result_id job_id result_kind result_seq schema_version result_payload_ref summary_json created_at
        org_id
    """,
    "idempotency_keys": "org_id idempotency_key status first_seen_at last_seen_at result_ref error_ref",
    "job_attempts": "org_id job_id attempt worker_id started_at ended_at ended_by",
}


@pytest.mark.parametrize("view", FIELDS)
def test_every_documented_field_is_a_column_of_its_view(sql: psycopg.Connection, view: str) -> None:
    columns = sql.execute(f"select * from duly.{view}").description
    assert columns
    assert set(FIELDS[view].split()) - {column.name for column in columns} == set()


@pytest.mark.parametrize("view", FIELDS)
async def test_a_view_returns_only_rows_of_the_tenant(
    app: Duly, acting: uuid.UUID, database: Database, view: str
) -> None:
    @app.job("step.take")
    def take(n: int) -> None: ...

    await take.enqueue(1)
    counts = {}
    for org in (acting, uuid.uuid4()):
        async with database.tenant(org) as conn:
            counts[org] = (await conn.execute(f"select * from duly.{view}")).rowcount
    expected = 1 if view in ("jobs", "job_events", "idempotency_keys") else 0
    assert list(counts.values()) == [expected, 0]


def test_models_of_jobs_and_events_use_only_columns_of_their_views(sql: psycopg.Connection) -> None:
    for view, shape in (("jobs", JobSnapshot), ("job_events", JobEvent)):
        columns = {column.name for column in sql.execute(f"select * from duly.{view}").description or []}
        assert set(shape.model_fields) <= columns
