"""Finding stale jobs costs the same, however many jobs there are."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly, context
from duly.db.pool import Connection
from duly.db.session_settings import ENGINE_ROLE_SQL
from duly.db.statements import statement
from duly.jobs.stale_jobs import QueueScanCursor, find_stale_queued
from tests.plans.plan_recorder import OPTIONS, PlanRecorder
from tests.plans.test_listing import filled, rows_read

__all__ = ["filled"]
ZERO_UUID = uuid.UUID(int=0)
DAY = {"at_least": timedelta(days=1), "usual": 86400.0}


def read_by(sql: psycopg.Connection[Any], name: str, values: dict[str, Any]) -> float:
    with sql.transaction():
        sql.execute(ENGINE_ROLE_SQL)
        for _ in range(2):
            explain = f"explain (analyze, format json) {statement(name)}"
            row = sql.execute(explain, values, prepare=True).fetchone()
    assert row
    return rows_read(row[0][0]["Plan"])


@pytest.mark.parametrize(
    ("name", "values", "max_rows"),
    [
        # One row per scanned part of the queue, of which there are 3,001, and its oldest.
        (
            "find_queued",
            {"queue": "", "org_id": ZERO_UUID, "rank": -32768, "steps": 200, "limit": 50, **DAY},
            400,
        ),
        ("find_scheduled", {"limit": 50, **DAY}, 0),
        # A hundred claimed jobs: state and record.
        ("find_running", {"limit": 50, "at_least": timedelta(0), "usual": 3600.0}, 200),
        # Key, state, record and queue row of each job.
        (
            "scan",
            {
                "org_id": ZERO_UUID,
                "job_id": ZERO_UUID,
                "steps": 100,
                "usual_queued": 86400.0,
                "usual_held": 3600.0,
            },
            400,
        ),
    ],
)
def test_a_sweep_reads_no_more_than_its_bound(
    sql: psycopg.Connection[Any], filled: uuid.UUID, name: str, values: dict[str, Any], max_rows: int
) -> None:
    assert read_by(sql, f"stale_jobs/{name}", values) <= max_rows


async def test_a_sweep_over_few_orgs_with_many_queued_jobs_reads_none_of_their_records(
    app: Duly, sql: psycopg.Connection[Any]
) -> None:
    @app.job("step.take")
    async def take(n: int) -> None: ...

    for org in [uuid.uuid4() for _ in range(20)]:
        await app.create_org(org, "many")
        with context(org_id=org, actor=Actor.system("test")):
            await app.enqueue_many([take.call(n) for n in range(1000)])
    sql.execute("vacuum analyze")
    conn = await Connection.connect(sql.info.dsn, options=OPTIONS, prepare_threshold=0)
    try:
        recorder = PlanRecorder(conn)
        await conn.execute("set local plan_cache_mode = force_generic_plan", prepare=False)
        await conn.execute(ENGINE_ROLE_SQL, prepare=False)
        found = await find_stale_queued(
            conn, QueueScanCursor(), at_least=timedelta(days=1), steps=200, limit=200
        )
        await conn.execute("set local application_name = ''", prepare=False)
    finally:
        await conn.close()
    assert found == ([], None)
    assert recorder.read["job_records"] == 0


def test_checking_jobs_reads_only_those_jobs(sql: psycopg.Connection[Any], filled: uuid.UUID) -> None:
    checked = sql.execute("select org_id, job_id from duly.job_records limit 50").fetchall()
    values = {"org_ids": [org for org, _ in checked], "job_ids": [job for _, job in checked]}
    assert read_by(sql, "stale_jobs/read_evidence", values) <= 200
