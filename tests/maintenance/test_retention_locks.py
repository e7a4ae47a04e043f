"""Locks and rights of dropping partitions."""

from __future__ import annotations

import threading
import uuid
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duly.core.errors import ContractError, NotFound
from duly.db.database import Database
from duly.db.statements import statement
from duly.maintenance import retention
from duly.testing import FreshDatabase
from tests.db.tenancy import insert
from tests.maintenance.aging import Conn, drop, ended, everything, make_partitions, one, partitions, why

ORG = uuid.UUID(int=0xA)


@pytest.fixture
def aged(sql: Conn) -> Conn:
    make_partitions(sql)
    insert(sql, "organizations", ORG)
    return sql


@pytest.mark.parametrize("mode", ["access share", "row exclusive"])
def test_a_drop_waits_two_seconds_for_a_lock(aged: Conn, fresh: FreshDatabase, mode: str) -> None:
    ended(aged, ORG)
    before, names = everything(aged), partitions(aged, "event_log")
    with psycopg.connect(fresh.direct_url) as other:
        other.execute(f"lock table only duly.event_log in {mode} mode")
        assert drop(aged, "event_log") == [(names[0], "busy")]
    assert (everything(aged), partitions(aged, "event_log")) == (before, names)
    assert drop(aged, "event_log") == [(names[0], "dropped")]


def test_a_drop_does_not_wait_for_a_vacuum(aged: Conn, fresh: FreshDatabase) -> None:
    name = partitions(aged, "event_log")[0]
    with psycopg.connect(fresh.direct_url) as other:
        other.execute(f"lock table duly.{name} in share update exclusive mode")
        aged.execute("set statement_timeout = '1900ms'")
        assert drop(aged, "event_log") == [(name, "busy")]


def test_one_process_drops_at_a_time(aged: Conn, fresh: FreshDatabase) -> None:
    with psycopg.connect(fresh.direct_url) as other:
        other.execute("select duly.ensure_partitions()")
        assert drop(aged, "event_log") == [("event_log", "busy")]
    assert drop(aged, "event_log")[0][1] == "dropped"


def test_many_processes_at_once_drop_each_partition_once(aged: Conn, fresh: FreshDatabase) -> None:
    names = partitions(aged, "event_log")
    dropped: list[str] = []

    def work() -> None:
        with psycopg.connect(fresh.direct_url, autocommit=True) as conn:
            while partitions(conn, "event_log"):
                dropped.extend(name for name, outcome in drop(conn, "event_log") if outcome == "dropped")

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(dropped) == names


def test_a_process_that_hangs_with_the_lock_is_terminated(aged: Conn) -> None:
    with aged.transaction():
        drop(aged, "event_log")
        assert one(aged, "show idle_in_transaction_session_timeout") == "5s"
    assert one(aged, "show idle_in_transaction_session_timeout") == "0"


def test_nothing_else_is_locked_against_readers_or_writers(aged: Conn) -> None:
    query = """
        select array_agg(distinct c.relname order by c.relname)
        from pg_locks l join pg_class c on c.oid = l.relation
        where l.pid = pg_backend_pid() and l.mode = 'AccessExclusiveLock'
          and c.relnamespace = 'duly'::regnamespace
    """
    for parent in ("job_records", "schedule_ticks", "result_finals"):
        with aged.transaction(force_rollback=True):
            drop(aged, parent)
            assert one(aged, query) == [parent, f"{parent}_default"]


def test_a_partition_with_dependent_objects_stays(aged: Conn) -> None:
    first, second, *_ = partitions(aged, "event_log")
    aged.execute(f"create view public.mine as select * from duly.{first}")
    assert drop(aged, "event_log") == [(first, "kept"), (second, "dropped")]
    assert "other objects depend on it" in why(aged, "event_log")


# --- privileges and refusals


@pytest.mark.parametrize("role", ["duly_tenant", "duly_operator"])
def test_only_the_engine_may_drop(aged: Conn, role: str) -> None:
    with aged.transaction(force_rollback=True), pytest.raises(psycopg.errors.InsufficientPrivilege):
        aged.execute(f"set local role {role}")
        aged.execute("select duly.drop_expired_partitions('event_log', '30 days')")


@pytest.mark.parametrize(
    "call",
    ["why_kept(t, 'x', now(), now(), now())", "drop_partition(t, 'event_log_20240115')",
     "delete_strays(t, now(), now())"],
)  # fmt: skip
def test_the_engine_cannot_bypass_the_checks(aged: Conn, call: str) -> None:
    with aged.transaction(force_rollback=True), pytest.raises(psycopg.errors.InsufficientPrivilege):
        aged.execute("set local role duly_engine")
        aged.execute(f"select duly.{call} from duly.partitioned_tables t")


BATCHES = {
    "store_key_answers": {"keep": timedelta(days=1), "limit": 5},
    "delete_expired_ledger": {"limit": 5},
    "delete_expired_sessions": {"limit": 5},
    "delete_gone_workers": {"keep": timedelta(days=1), "limit": 5},
    "delete_orphaned_dead_letters": {"keep": timedelta(days=1), "limit": 5},
    "expire_orphaned_artifacts": {"keep": timedelta(days=1), "limit": 5},
    "delete_expired_artifacts": {"limit": 5},
    "list_released_blobs": {"limit": 5},
    "delete_released_blobs": {"blob_refs": ["x"]},
    "ensure_partitions": {},
}


@pytest.mark.parametrize("verb", BATCHES)
async def test_a_tenant_may_not_drop_partitions(database: Database, verb: str) -> None:
    async with database.engine() as conn:
        await conn.execute(statement(f"retention/{verb}"), BATCHES[verb])
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with database.tenant(ORG) as conn:
            await conn.execute(statement(f"retention/{verb}"), BATCHES[verb])


async def test_a_table_without_partitions_is_refused(database: Database) -> None:
    with pytest.raises(NotFound, match="ledger") as caught:
        async with database.engine() as conn:
            await retention.drop_expired_partitions(conn, "ledger", timedelta(days=1))
    assert caught.value.field == "parent"


@pytest.mark.parametrize("keep", [None, timedelta(0), timedelta(days=-1), timedelta(days=30_000)])
async def test_a_retention_that_would_drop_too_much_is_refused(database: Database, keep: Any) -> None:
    with pytest.raises(ContractError) as caught:
        async with database.engine() as conn:
            await retention.drop_expired_partitions(conn, "event_log", keep)
    assert caught.value.field == "keep"
