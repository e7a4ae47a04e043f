"""Lists of jobs read a bounded number of rows, and queues are counted up to the limit."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from duly.db.session_settings import ENGINE_ROLE_SQL
from duly.db.statements import statement

ROWS = 20_000
_FILL = """
with job as materialized (
    select case when n %% 2 = 0 then %(org)s::uuid else gen_random_uuid() end as org_id,
           duly.uuid7() as job_id, n
    from generate_series(1, %(rows)s) n
), record as (
    insert into duly.job_records (
        org_id, job_id, result_id, job_type, category, queue, priority, max_attempts, subject_id,
        actor_type, actor_id, request_id, correlation_id, idempotency_key, payload, payload_hash, policy,
        metadata, run_at, created_at)
    select org_id, job_id, job_id, 'type.' || n %% 50, 'default', 'q:default', n %% 3, 5, 'doc-' || n %% 500,
           'user', 'u1', 'r', 'r', n::text, '{}', 'h', '{}', jsonb_build_object('n', n), now(), now() from job
), state as (
    insert into duly.job_states (
        org_id, job_id, status, outcome, run_at, updated_at, finished_at, progress_percent, error_code,
        error_message, retryable)
    select org_id, job_id, case when n %% 20 = 0 then 'failed' else 'completed' end,
           case when n %% 20 = 0 then 'failed' else 'succeeded' end, now(), now(),
           now() - make_interval(secs => n), 100, 'e', 'm', false from job where n > 8000
), ready as (
    insert into duly.ready (queue, org_id, rank, job_id)
    select 'q:default', org_id, -(n %% 3), job_id from job where n <= 6000
), scheduled as (
    insert into duly.scheduled (run_at, org_id, job_id, queue, rank)
    select now() + make_interval(secs => n), org_id, job_id, 'q:default', 0
    from job where n between 6001 and 7900
), held as (
    insert into duly.job_states (org_id, job_id, status, outcome, run_at, updated_at)
    select org_id, job_id, 'running', 'pending', now(), now() from job where n between 7901 and 8000
)
insert into duly.claims (claim_id, worker_id, claimed_at, org_ids, job_ids)
select gen_random_uuid(), gen_random_uuid(), now(), array_agg(org_id), array_agg(job_id)
from job where n between 7901 and 8000
"""
_LARGE = ("job_records", "job_states", "ready", "scheduled", "event_log")


@pytest.fixture
def filled(sql: psycopg.Connection) -> uuid.UUID:
    return fill(sql)


def fill(sql: psycopg.Connection) -> uuid.UUID:
    """Create an org with half of all jobs."""
    org = uuid.uuid4()
    sql.execute(_FILL, {"org": org, "rows": ROWS})
    for table in (*_LARGE, "claims"):
        sql.execute(f"vacuum analyze duly.{table}")
    return org


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", []):
        yield from nodes(part)


def rows_read(plan: dict[str, Any]) -> float:
    """Return how many rows of the large tables a plan has read; a sequential scan with rows is an error."""
    read = 0.0
    for node in nodes(plan):
        table = node.get("Relation Name", "")
        if not table.startswith(_LARGE):
            continue
        rows = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        # A partition without rows may be scanned.
        assert node["Node Type"] != "Seq Scan" or rows == 0, f"scans {table}"
        read += rows
    return read


def test_queue_lists_are_counted_up_to_the_limit(sql: psycopg.Connection, filled: uuid.UUID) -> None:
    explain = f"explain (analyze, format json) {statement('queues/read_stats')}"
    with sql.transaction():
        sql.execute(ENGINE_ROLE_SQL)
        row = sql.execute(explain, {"max_count": 100, "max_heads": 100}).fetchone()
    assert row
    waiting, heads, scheduled, running = 101, 100 * 3, 101, 100 * 2
    assert rows_read(row[0][0]["Plan"]) <= waiting + heads + scheduled + running + 10
