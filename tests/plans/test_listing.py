"""Lists of jobs are served by indexes, whatever the planner is allowed to do."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from duly.model.states import Status
from duly.store.listing import NEWEST, Choice
from duly.store.session import ENGINE_ROLE
from duly.store.statements import statement

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
        run_at, created_at)
    select org_id, job_id, job_id, 'type.' || n %% 50, 'default', 'q:default', n %% 3, 5, 'doc-' || n %% 500,
           'user', 'u1', 'r', 'r', n::text, '{}', 'h', '{}', now(), now() from job
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
    """An org with half of all jobs."""
    org = uuid.uuid4()
    sql.execute(_FILL, {"org": org, "rows": ROWS})
    for table in (*_LARGE, "claims"):
        sql.execute(f"vacuum analyze duly.{table}")
    return org


CHOICES = {
    "all": {},
    "by type": {"job_type": "type.7"},
    "by subject": {"subject_id": "doc-8"},
    "by subject and status": {"subject_id": "doc-8", "status": Status.COMPLETED},
    **{f"{status}": {"status": status} for status in Status},
    "completed of a type": {"status": Status.COMPLETED, "job_type": "type.7"},
    "queued of a type": {"status": Status.QUEUED, "job_type": "type.7"},
}


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", []):
        yield from nodes(part)


@pytest.mark.parametrize("generic", [False, True], ids=["custom plan", "generic plan"])
@pytest.mark.parametrize("wanted", CHOICES)
def test_no_list_reads_more_than_it_looks_at(
    sql: psycopg.Connection, filled: uuid.UUID, wanted: str, generic: bool
) -> None:
    choice = Choice(filled, **CHOICES[wanted])
    values = {**choice._asdict(), "before_at": NEWEST.at, "before_job": NEWEST.job_id, "look": 51}
    with sql.transaction():
        sql.execute(f"set local plan_cache_mode = force_{'generic' if generic else 'custom'}_plan")
        role = "duly_engine" if choice.of_the_engine else "duly_tenant"
        sql.execute("select set_config('duly.org_id', %s, true)", [str(filled)])
        sql.execute(f"set local role {role}")
        explain = f"explain (analyze, format json) {statement(choice.path)}"
        for _ in range(2):
            row = sql.execute(explain, values, prepare=True).fetchone()
    assert row
    assert rows_read(row[0][0]["Plan"]) <= 700


def rows_read(plan: dict[str, Any]) -> float:
    """How many rows of the large tables a plan has read; a scan of one that has rows is an error."""
    read = 0.0
    for node in nodes(plan):
        table = node.get("Relation Name", "")
        if not table.startswith(_LARGE):
            continue
        rows = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        # A partition without rows may be scanned as well as looked up.
        assert node["Node Type"] != "Seq Scan" or rows == 0, f"scans {table}"
        read += rows
    return read


def test_what_is_shown_of_the_queues_is_counted_no_further_than_asked_for(
    sql: psycopg.Connection, filled: uuid.UUID
) -> None:
    explain = f"explain (analyze, format json) {statement('queues/stats')}"
    with sql.transaction():
        sql.execute(ENGINE_ROLE)
        row = sql.execute(explain, {"most": 100, "heads": 100}).fetchone()
    assert row
    waiting, heads, scheduled, running = 101, 100 * 3, 101, 100 * 2
    assert rows_read(row[0][0]["Plan"]) <= waiting + heads + scheduled + running + 10
