"""A page of the feed costs the same, however large the log."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import psycopg
import pytest

from duly.db.rows import PREFER_INDEX_ORDER
from duly.db.session_settings import ENGINE_ROLE_SQL
from duly.db.statements import statement
from tests.db.open_transactions import wait_for_transactions


@pytest.mark.parametrize("analyzed", [False, True], ids=["without statistics", "analyzed"])
async def test_a_page_reads_no_more_than_its_rows_however_large_the_log(
    sql: psycopg.Connection, analyzed: bool
) -> None:
    sql.execute("""
        insert into duly.event_log (org_id, job_id, event_seq, event_type, status, attempt, occurred_at,
            actor_type, actor_id, commit_xid)
        select gen_random_uuid(), duly.uuid7(), 1, 'job.queued', 'queued', 0, now(), 'user', 'u',
            (3 + n / 100)::text::xid8
        from generate_series(1, 30000) n
    """)
    wait_for_transactions(sql)
    if analyzed:
        sql.execute("vacuum analyze duly.event_log")
    values = {
        "org_id": uuid.uuid4(), "xid": "20", "job_id": uuid.UUID(int=0), "event_seq": 0, "drops": 0,
        "limit": 100, "max_scanned": 500,
    }  # fmt: skip
    with sql.transaction():
        sql.execute(ENGINE_ROLE_SQL)
        sql.execute(PREFER_INDEX_ORDER)
        explain = f"explain (analyze, format json) {statement('feed/scan')}"
        for _ in range(2):
            row = sql.execute(explain, values, prepare=True).fetchone()
    assert row
    read = sum(_read(row[0][0]["Plan"]))
    assert 500 <= read <= 700, read


def _read(plan: dict[str, Any]) -> Iterable[float]:
    if plan.get("Relation Name", "").startswith("event_log"):
        yield (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    for part in plan.get("Plans", []):
        yield from _read(part)
