"""Dropping expired partitions: one at a time, and never one that is needed."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest
from pydantic import ValidationError

from duly.core.policy import Retention
from duly.db.database import Database
from duly.db.statements import statement
from duly.maintenance import retention
from duly.testing import FreshDatabase
from tests.db.tenancy import insert
from tests.maintenance.aging import (
    LONG_AGO,
    Conn,
    claim_plain,
    drop,
    ended,
    ended_plain,
    everything,
    job_id,
    make_partitions,
    one,
    partitions,
    record,
    why,
)

ORG = uuid.UUID(int=0xA)
MONTHLY = ("job_records", "job_states", "job_ends", "result_finals")
JOB_TABLES = (
    "event_log", "job_logs", "webhook_deliveries", "result_partials", "result_finals",
    "job_records", "job_states", "job_ends",
)  # fmt: skip


@pytest.fixture
def aged(sql: Conn) -> Conn:
    make_partitions(sql)
    insert(sql, "organizations", ORG)
    return sql


def test_every_partitioned_table_has_a_retention(sql: Conn) -> None:
    """A new one needs a time in `kept_for`, and to say how old its rows are."""
    tables = [name for (name,) in sql.execute("select parent from duly.partitioned_tables")]
    assert set(retention.retention_by_table(Retention())) == set(tables)
    for parent, dated_in, dated_by in sql.execute(
        "select parent, dated_in, dated_by from duly.partitioned_tables"
    ).fetchall():
        sql.execute(f"select {dated_by} from duly.{dated_in}")
        blobs = "select names_blobs from duly.partitioned_tables where parent = %s"
        assert one(sql, blobs, parent) == _has_column(sql, parent, "payload_ref")


def _has_column(sql: Conn, table: str, column: str) -> bool:
    query = "select exists (select from pg_attribute where attrelid = %s::regclass and attname = %s)"
    return bool(one(sql, query, f"duly.{table}", column))


def test_every_table_with_jobs_is_covered_by_retention(sql: Conn) -> None:
    """One that makes a job active must be part of the view `kept_back`."""
    query = """
        select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = 'duly'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
          and a.attname in ('job_id', 'job_ids') and not a.attisdropped
    """
    keeps = {"ready", "scheduled", "job_states", "claims", "key_ledger", "ledger"}
    history = {
        "job_records", "event_log", "result_snapshots", "schedule_ticks", "job_logs", "webhook_deliveries",
        "job_ends", "event_batches",
    }  # fmt: skip
    # A run identity is never without an active state or queue row; the rest follows the job.
    follows = {"active_runs", "dead_letters", "artifacts", "bridge_debts", "subscriptions"}
    # What was told of a job may stay without it.
    tells = {"notifications", "relay_mark"}
    assert {name for (name,) in sql.execute(query)} == keeps | history | follows | tells
    view = one(sql, "select pg_get_viewdef('duly.kept_back'::regclass)")
    assert [t for t in keeps if f"duly.{t}" not in view and f"FROM {t}" not in view] == []


def test_the_default_retention_is_as_documented() -> None:
    days = {name: kept and kept.days for name, kept in retention.retention_by_table(Retention()).items()}
    assert days == {
        "event_log": 30, "result_partials": 14, "result_finals": 90, "job_records": 400, "job_states": 400,
        "job_ends": 400, "event_batches": 400,
        "schedule_ticks": 400, "audit_entries": None, "job_logs": 30, "webhook_deliveries": 30,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("field", "given"),
    [("events", {"events": timedelta(0)}), ("audit", {"audit": timedelta(days=-1)}),
     ("final_results", {"final_results": timedelta(days=40_000)}),
     ("jobs", {"jobs": timedelta(days=60)}), ("jobs", {"events": timedelta(days=500)})],
)  # fmt: skip
def test_an_invalid_retention_is_refused_by_name(field: str, given: dict[str, timedelta]) -> None:
    with pytest.raises(ValidationError) as caught:
        Retention(**given)
    assert caught.value.errors()[0]["loc"] == (field,)


def test_one_partition_is_dropped_per_call_oldest_first(aged: Conn) -> None:
    before = partitions(aged, "event_log")
    assert drop(aged, "event_log") == [(before[0], "dropped")]
    assert drop(aged, "event_log") == [(before[1], "dropped")]
    assert partitions(aged, "event_log") == before[2:]


def test_a_partition_is_dropped_when_its_whole_range_is_expired(aged: Conn) -> None:
    assert "event_log_20240122" in partitions(aged, "event_log")  # up to the 29th
    for now, left in (("2024-02-27T23:59:59Z", "20240122"), ("2024-02-28T00:00:00Z", "20240129")):
        while drop(aged, "event_log", "30 days", now):
            pass
        assert partitions(aged, "event_log")[0] == f"event_log_{left}"


def test_current_and_coming_partitions_are_never_dropped(sql: Conn) -> None:
    for parent in retention.retention_by_table(Retention()):
        assert drop(sql, parent, "1 second") == []
    assert one(sql, "select duly.ensure_partitions()") == 0


@pytest.mark.parametrize("parent", JOB_TABLES[:-2])
def test_nothing_but_the_old_partition_is_touched(aged: Conn, parent: str) -> None:
    ended(aged, ORG)
    ended(aged, ORG, "2024-03-20T00:00:00Z")
    table = {"result_partials": "result_snapshots", "result_finals": "result_snapshots"}.get(parent, parent)
    count = f"select count(*) from duly.{parent}"
    before = everything(aged, table, "event_drops")
    assert one(aged, count) == 2
    while partitions(aged, parent)[0] < f"{parent}_202402":
        assert drop(aged, parent)[0][1] == "dropped"
    assert one(aged, count) == 1
    assert everything(aged, table, "event_drops") == before


@pytest.mark.parametrize("parent", ["job_states", "job_ends"])
def test_states_and_ends_are_dropped_only_after_their_records(aged: Conn, parent: str) -> None:
    job = ended(aged, ORG) if parent == "job_states" else ended_plain(aged, ORG)
    assert why(aged, parent) == "its job_records are still there"
    while partitions(aged, "job_records"):
        drop(aged, "job_records")
    assert one(aged, "select count(*) from duly.jobs where job_id = %s", job) == 0
    while partitions(aged, parent):
        drop(aged, parent)
    assert one(aged, f"select count(*) from duly.{parent}") == 0


def test_a_record_stays_while_the_end_of_its_job_is_young(aged: Conn) -> None:
    job = ended_plain(aged, ORG, ended_at="2024-12-20T00:00:00Z")
    for now, there in (("2025-01-18T00:00:00Z", 1), ("2025-01-20T00:00:00Z", 0)):
        for _ in range(20):
            drop(aged, "job_records", "30 days", now)
        assert one(aged, "select count(*) from duly.job_records where job_id = %s", job) == there


ACTIVE: dict[str, Callable[[Conn, uuid.UUID], None]] = {
    "is ready": lambda sql, job: insert(sql, "ready", ORG, job_id=job),
    "is ready in a lane": lambda sql, job: insert(sql, "ready", ORG, job_id=job, queue="q:default#t"),
    "waits for its time": lambda sql, job: insert(sql, "scheduled", ORG, job_id=job),
    "is queued": lambda sql, job: insert(sql, "job_states", ORG, job_id=job, status="queued"),
    "is running": lambda sql, job: insert(sql, "job_states", ORG, job_id=job, status="running"),
    "is running on the plain path": lambda sql, job: claim_plain(sql, ORG, job),
    "is partial": lambda sql, job: insert(sql, "job_states", ORG, job_id=job, status="partial"),
}


@pytest.mark.parametrize("parent", JOB_TABLES)
@pytest.mark.parametrize("state", ACTIVE)
def test_an_active_job_holds_its_partitions_back(aged: Conn, state: str, parent: str) -> None:
    for _ in range(3):
        ended(aged, ORG)
    job = record(aged, ORG)
    ACTIVE[state](aged, job)
    kept = f"{parent}_20240101" if parent in MONTHLY else f"{parent}_20240115"
    before = everything(aged)
    for table in ("job_records", parent):
        for _ in range(20):
            drop(aged, table)
    assert partitions(aged, parent) == [kept]
    assert (
        why(aged, parent)
        == f"job {job} {state.removesuffix(' in a lane').removesuffix(' on the plain path')}"
    )
    assert everything(aged) == before
    assert one(aged, "select status from duly.jobs where job_id = %s", job) in (
        "queued",
        "running",
        "partial",
    )


@pytest.mark.parametrize("parent", ["event_log", "result_partials", "result_finals", "job_records"])
def test_retention_of_a_job_counts_from_its_end_not_its_id(aged: Conn, parent: str) -> None:
    job = ended(aged, ORG, ended_at="2024-12-20T00:00:00Z")
    for now, there in (("2025-01-18T00:00:00Z", 1), ("2025-01-20T00:00:00Z", 0)):
        for _ in range(20):
            drop(aged, parent, "30 days", now)
        assert one(aged, f"select count(*) from duly.{parent} where job_id = %s", job) == there


@pytest.mark.parametrize("parent", ["schedule_ticks", "audit_entries"])
def test_tables_partitioned_by_time_are_dropped_by_time(aged: Conn, parent: str) -> None:
    column = {"schedule_ticks": "tick_at", "audit_entries": "occurred_at"}[parent]
    insert(aged, "schedules", ORG)
    for at in (LONG_AGO, "2024-03-20T00:00:00Z"):
        insert(aged, parent, ORG, **{column: at})
    for _ in range(9):
        drop(aged, parent, "30 days", "2024-04-15T00:00:00Z")
    assert one(aged, f"select array_agg({column}::date::text) from duly.{parent}") == ["2024-03-20"]


# --- the default partition


def test_old_rows_of_the_default_partition_are_deleted_in_batches(sql: Conn) -> None:
    insert(sql, "organizations", ORG)
    sql.execute(
        """
        insert into duly.event_log
            (org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
        select %s, duly.uuid7_floor('2024-01-17'), n, 'job.queued', 'queued', 0, '2024-01-17', 'user', 'u'
        from generate_series(1, 1100) n
        """,
        [ORG],
    )
    counted = "select row_count from duly.drop_expired_partitions('event_log', '30 days')"
    assert [sql.execute(counted).fetchall() for _ in range(4)] == [[(500,)], [(500,)], [(100,)], []]
    assert one(sql, "select count(*) from duly.partitions where partition = 'event_log_default'") == 1


@pytest.mark.parametrize("ledger", ["key_ledger", "ledger"])
def test_rows_of_active_jobs_stay_in_the_default_partition(sql: Conn, ledger: str) -> None:
    insert(sql, "organizations", ORG)
    old, lately = ended(sql, ORG), ended(sql, ORG, ended_at=str(one(sql, "select now()")))
    running, answering = record(sql, ORG), ended(sql, ORG)
    insert(sql, "job_states", ORG, job_id=running)
    insert(sql, "event_log", ORG, job_id=running)
    insert(sql, ledger, ORG, job_id=answering, expires_at="infinity")
    for parent in JOB_TABLES:
        for _ in range(3):
            drop(sql, parent)
    left = {t: {j for (j,) in sql.execute(f"select job_id from duly.{t}")} for t in JOB_TABLES}
    assert left["job_records"] == left["job_states"] == {lately, running, answering}
    assert left["event_log"] == {lately, running}
    assert left["result_partials"] == left["result_finals"] == {lately}
    assert old not in left["job_states"]


def test_rows_of_the_default_partition_by_time_are_deleted(sql: Conn) -> None:
    for at in (LONG_AGO, "2999-01-01T00:00:00Z"):
        insert(sql, "audit_entries", ORG, occurred_at=at)
    assert drop(sql, "audit_entries") == [("audit_entries_default", "deleted")]
    assert one(sql, "select array_agg(extract(year from occurred_at)) from duly.audit_entries") == [2999]


# --- keys that are still alive


@pytest.mark.parametrize("how", ["completed", "failed", "dead", "canceled"])
async def test_a_live_key_answers_the_same_after_its_job_was_dropped(
    aged: Conn, database: Database, how: str
) -> None:
    job = ended(aged, ORG, how=how)
    insert(aged, "key_ledger", ORG, job_id=job, expires_at="infinity")
    answer = "select job_id, status, result_ref, error_ref from duly.idempotency_keys"
    before = aged.execute(answer).fetchall()
    for _ in range(9):
        drop(aged, "job_records")
    assert partitions(aged, "job_records") == ["job_records_20240101"]
    assert why(aged, "job_records") == f"job {job} answers a live idempotency key"
    async with database.engine() as conn:
        assert await retention.run_batch(conn, "store_key_answers", timedelta(days=30)) == 1
        assert await retention.run_batch(conn, "store_key_answers", timedelta(days=30)) == 0
    for parent in ("job_records", "job_states"):
        for _ in range(9):
            drop(aged, parent)
    assert one(aged, "select count(*) from duly.job_records") == 0
    assert one(aged, "select count(*) from duly.job_states") == 0
    assert aged.execute(answer).fetchall() == before
    assert before[0][1] == {"completed": "succeeded", "dead": "dead"}.get(how, "failed")
    assert before[0][3] == {"completed": None, "canceled": "run.canceled"}.get(how, "boom")


async def test_only_old_ended_jobs_of_live_keys_are_written_to_the_ledger(
    aged: Conn, database: Database
) -> None:
    insert(aged, "key_ledger", ORG, key_hash=b"young", job_id=record(aged, ORG, "2099-01-01T00:00:00Z"),
           expires_at="infinity")  # fmt: skip
    insert(aged, "key_ledger", ORG, key_hash=b"expired", job_id=ended(aged, ORG), expires_at=LONG_AGO)
    running = record(aged, ORG)
    insert(aged, "job_states", ORG, job_id=running)
    insert(aged, "key_ledger", ORG, key_hash=b"running", job_id=running, expires_at="infinity")
    async with database.engine() as conn:
        assert await retention.run_batch(conn, "store_key_answers", timedelta(days=30)) == 0
    assert one(aged, "select count(final_status) from duly.key_ledger") == 0


@pytest.mark.parametrize("ledger", ["key_ledger", "ledger"])
def test_an_expired_key_holds_nothing_back(aged: Conn, ledger: str) -> None:
    insert(aged, ledger, ORG, job_id=ended(aged, ORG), expires_at=LONG_AGO)
    while partitions(aged, "job_records"):
        assert drop(aged, "job_records")


# --- blobs


@pytest.mark.parametrize("parent", ["job_records", "result_partials", "result_finals"])
@pytest.mark.parametrize("stray", [False, True])
def test_blobs_of_dropped_rows_are_released_but_not_of_other_orgs(
    sql: Conn, parent: str, stray: bool
) -> None:
    if not stray:
        make_partitions(sql)
    insert(sql, "organizations", ORG)
    mine, theirs = f"blob:{ORG}/aa/1", f"blob:{uuid.uuid4()}/bb/1"
    for ref in (mine, mine, theirs, None):
        job = job_id(sql)
        if parent == "job_records":
            record(sql, ORG, job_id=job, payload_ref=ref)
        else:
            kind = {"result_partials": "partial", "result_finals": "final"}[parent]
            insert(sql, "result_snapshots", ORG, job_id=job, result_kind=kind, payload_ref=ref,
                   created_at=LONG_AGO)  # fmt: skip
    while drop(sql, parent):
        pass
    assert sql.execute("select blob_ref from duly.released_blobs").fetchall() == [(mine,)]


def test_every_column_with_blob_references_is_checked(sql: Conn) -> None:
    """A new one must be part of the view `named_blobs`, or what it names is removed."""
    query = """
        select c.relname || '.' || a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = 'duly'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
          and a.attname ~ '(payload|blob|file|body|content)_ref' and c.relname <> 'released_blobs'
    """
    named = {"job_records.payload_ref", "result_snapshots.payload_ref", "artifacts.blob_ref"}
    assert {name for (name,) in sql.execute(query)} == named
    view = one(sql, "select pg_get_viewdef('duly.named_blobs'::regclass)")
    assert [n for n in named if n not in view] == []


async def test_a_blob_is_looked_up_by_index(database: Database) -> None:
    async with database.engine() as conn:
        rows = await conn.execute(f"explain {statement('retention/list_released_blobs')}", {"limit": 50})
        plan = " ".join(line for (line,) in await rows.fetchall())
    assert plan.count("payload_ref_idx") > 20
    assert "artifacts_by_blob" in plan
    assert "Seq Scan" not in plan


# --- the ledger


async def test_expired_keys_are_found_by_their_block_ranges(database: Database, sql: Conn) -> None:
    sql.execute(
        """
        insert into duly.key_ledger (org_id, key_hash, job_id, first_seen_at, expires_at)
        select %s, duly.key_hash('k' || n), duly.uuid7(), now(), now() + (n - 1000) * interval '1 minute'
        from generate_series(1, 20000) n
        """,
        [ORG],
    )
    sql.execute("vacuum analyze duly.key_ledger")
    async with database.engine() as conn:
        plan = await conn.execute(f"explain {statement('retention/delete_expired_ledger')}", {"limit": 500})
        assert "key_ledger_expiry" in str(await plan.fetchall())
        counts = [await retention.run_batch(conn, "delete_expired_ledger") for _ in range(3)]
    assert counts == [500, 500, 0]
    assert one(sql, "select count(*) from duly.key_ledger where expires_at <= now()") == 0
    assert one(sql, "select count(*) from duly.key_ledger") == 19_000


async def test_an_expired_key_that_is_being_reused_is_not_deleted(
    database: Database, sql: Conn, fresh: FreshDatabase
) -> None:
    for key in (b"a", b"b"):
        insert(sql, "key_ledger", ORG, key_hash=key, expires_at=LONG_AGO)
    with psycopg.connect(fresh.direct_url) as enqueuing:
        enqueuing.execute("update duly.key_ledger set expires_at = 'infinity' where key_hash = 'a'")
        async with database.engine() as conn:
            assert await retention.run_batch(conn, "delete_expired_ledger") == 1
    assert one(sql, "select key_hash from duly.key_ledger") == b"a"
