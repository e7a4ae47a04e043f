"""What the relay and the deliverer read does not grow with other orgs or with the backlog."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duly.core.job import SYSTEM_ORG
from duly.db.rows import PREFER_INDEX_ORDER
from duly.db.session_settings import ENGINE_ROLE_SQL
from duly.db.statements import statement
from tests.db.open_transactions import wait_for_transactions
from tests.plans.test_listing import nodes

NIL = uuid.UUID(int=0)
FILLINGS = """
    insert into duly.organizations (org_id, name) values (%(org)s, 'o');

    insert into duly.event_log (
        org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id, commit_xid)
    select case when n %% 100 = 0 then %(org)s::uuid else gen_random_uuid() end, duly.uuid7(), 1,
        'job.queued', 'queued', 0, now(), 'user', 'u', (3 + n / 100)::text::xid8
    from generate_series(1, 30000) n;

    insert into duly.job_records (
        org_id, job_id, result_id, job_type, category, queue, priority, max_attempts, actor_type, actor_id,
        request_id, correlation_id, idempotency_key, payload, payload_hash, policy, run_at, created_at)
    select org_id, job_id, gen_random_uuid(), 'plans.noop', 'default', 'q:default', 0, 5, 'user', 'u', 'r',
        'r', job_id::text, '{}', 'h', '{}', now(), now()
    from duly.event_log where org_id = %(org)s;

    insert into duly.webhook_endpoints (org_id, endpoint_id, url, event_types, created_by)
    select %(org)s, md5(n::text)::uuid, 'https://a', '{*}', 'u' from generate_series(1, 20) n;

    insert into duly.webhook_deliveries (
        org_id, endpoint_id, job_id, event_seq, event_type, due_at, follows)
    select %(org)s, md5(case when j.n <= 2000 then 1 else j.n %% 20 + 1 end::text)::uuid, j.id, s,
        'job.started', now() - interval '1 minute', s > 1
    from (select n, duly.uuid7() as id from generate_series(1, 3000) n) j, generate_series(1, 10) s
"""
"""One event in a hundred is of the org; most deliveries are pending for one of its endpoints."""


@pytest.mark.parametrize("analyzed", [False, True], ids=["without statistics", "analyzed"])
def test_relay_and_deliverer_read_only_their_batch_of_any_backlog(
    sql: psycopg.Connection[Any], analyzed: bool
) -> None:
    org = uuid.uuid4()
    for filling in FILLINGS.split(";\n"):
        sql.execute(filling, {"org": org})
    wait_for_transactions(sql)
    if analyzed:
        sql.execute("vacuum analyze duly.event_log, duly.webhook_deliveries, duly.webhook_endpoints")

    scan = {"xid": "20", "job_id": NIL, "event_seq": 0, "max_scanned": 500, "system_org": SYSTEM_ORG}
    scanned = read(sql, "relay/scan", scan)
    assert 500 <= scanned["event_log"] <= 700
    assert scanned["webhook_endpoints"] <= 25
    assert read(sql, "relay/lock_mark", {})["event_log"] <= 20
    found = sql.execute("select org_id, job_id, 1, 1 from duly.job_records limit 100").fetchall()
    columns = zip(
        ("org_ids", "job_ids", "first_seqs", "last_seqs"), map(list, zip(*found, strict=True)), strict=True
    )
    mark = {"xid": "20", "job_id": NIL, "event_seq": 0}
    assert 100 <= read(sql, "relay/read_events", {**mark, **dict(columns)})["event_log"] <= 200

    claim = {
        "after_org": NIL, "after_endpoint": NIL, "org_ids": [], "endpoint_ids": [], "in_flight": [],
        "limit": 64, "max_failing": 32, "per_endpoint": 8,
        "per_org": 160, "holder": uuid.uuid4(), "lease": timedelta(minutes=1),
        "breaker_threshold": 5, "max_walk": 200,
    }  # fmt: skip
    assert 64 <= read(sql, "deliveries/claim", claim)["webhook_deliveries"] <= 20 + 2 * 64 + 5

    sql.execute("update duly.relay_mark set commit_xid = '400'")
    with sql.transaction():
        sql.execute(ENGINE_ROLE_SQL)
        assert sql.execute(statement("relay/lock_mark")).fetchall() == []
        written = sql.execute("select pg_current_xact_id_if_assigned()").fetchone()
        assert written == (None,), "a relay without work locks nothing"


def read(sql: psycopg.Connection[Any], name: str, values: dict[str, Any]) -> Counter[str]:
    """Count the rows of each table that a statement reads; partitions count as their table."""
    plan: dict[str, Any] = {}
    with sql.transaction(force_rollback=True):
        sql.execute(f"{ENGINE_ROLE_SQL}; {PREFER_INDEX_ORDER}")
        for _ in range(2):
            found = sql.execute(f"explain (analyze, format json) {statement(name)}", values, prepare=True)
            [([plan],)] = found.fetchall()
    counts: Counter[str] = Counter()
    for node in nodes(plan["Plan"]):
        if "Scan" in node["Node Type"] and "Relation Name" in node:
            dropped = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
            table = re.sub(r"_(\d{8}|default)$", "", node["Relation Name"])
            counts[table] += round((node["Actual Rows"] + dropped) * node["Actual Loops"])
    return counts
