"""Database sessions when connections die, the pool is exhausted, or callers are canceled."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
import pytest
from psycopg import AsyncCursor

from duly.core.errors import StoreError, StoreUnavailable
from duly.db.database import Database, retry_transaction
from duly.db.pool import PoolSize
from duly.testing import FreshDatabase
from tests.worker.proxy import Proxy

KILL = """
    select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where pid <> pg_backend_pid() and datname = current_database() and backend_type = 'client backend'
"""


async def _backend(database: Database) -> int:
    async with database.engine() as conn:
        row = await (await conn.execute("select pg_backend_pid()")).fetchone()
    assert row
    return int(row[0])


async def test_a_connection_that_died_while_idle_is_replaced(
    fresh: FreshDatabase, sql: psycopg.Connection
) -> None:
    async with Database(fresh.direct_url) as database:
        before = await _backend(database)
        sql.execute(KILL)
        assert await _backend(database) != before


async def test_cached_plans_are_discarded_after_their_lifetime_without_a_traced_statement(
    fresh: FreshDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced: list[str] = []

    @contextmanager
    def trace(name: str) -> Iterator[None]:
        traced.append(name)
        yield

    async def plan(database: Database) -> str:
        async with database.engine() as conn:
            lines = await (await conn.execute("explain (costs off) execute lookup")).fetchall()
        return " ".join(line for (line,) in lines)

    monkeypatch.setattr("duly.db.database._PLAN_LIFETIME", 3600.0)
    async with Database(fresh.direct_url, size=PoolSize(1, 1), engine_only=True, tracer=trace) as database:
        async with database.engine() as conn:
            await conn.execute("prepare lookup as select relkind from pg_class where oid = 1")
        by_index = await plan(database)
        assert "Index Scan using" in by_index
        async with database.engine() as conn:
            # A new plan avoids index scans; a cached one still uses them.
            await conn.execute("set enable_indexscan = off")
        assert await plan(database) == by_index
        monkeypatch.setattr("duly.db.database._PLAN_LIFETIME", 0.0)
        traced.clear()
        assert "Index Scan using" not in await plan(database)
        assert traced == ["begin", "explain", "commit"]


async def test_a_connection_that_dies_in_use_raises_store_unavailable(
    fresh: FreshDatabase, sql: psycopg.Connection
) -> None:
    async with Database(fresh.direct_url) as database:
        with pytest.raises(StoreUnavailable, match="try again"):
            async with database.engine() as conn:
                sql.execute(KILL)
                await conn.execute("select 1")
        assert await _backend(database)


async def test_a_caller_that_waits_is_served_soon_after_the_database_is_back(
    fresh: FreshDatabase, sql: psycopg.Connection
) -> None:
    async with Proxy(fresh.url) as proxy, Database(proxy.url, size=PoolSize(1, 1)) as database:
        proxy.refuses = 5  # pauses that double would take 15 s
        with pytest.raises(StoreUnavailable):
            async with database.engine() as conn:
                sql.execute(KILL)
                await conn.execute("select 1")
        async with asyncio.timeout(12):
            assert await _backend(database)
    assert proxy.refuses == 0


async def test_a_failed_session_is_rolled_back(database: Database) -> None:
    org = uuid.uuid4()
    with pytest.raises(RuntimeError):
        async with database.engine() as conn:
            await conn.execute("insert into duly.organizations (org_id, name) values (%s, 'x')", [org])
            raise RuntimeError
    async with database.engine() as conn:
        rows = await conn.execute("select 1 from duly.organizations where org_id = %s", [org])
        assert await rows.fetchone() is None


async def test_an_exhausted_pool_raises_with_the_setting_to_change(fresh: FreshDatabase) -> None:
    size = PoolSize(min_size=1, max_size=1, timeout=0.1)
    async with Database(fresh.direct_url, size=size) as database, database.engine():
        with pytest.raises(StoreUnavailable, match="DULY_POOL_MAX"):
            async with database.engine():
                pass


async def test_a_canceled_session_returns_its_connection_to_the_pool(fresh: FreshDatabase) -> None:
    size = PoolSize(min_size=1, max_size=1, timeout=5)
    async with Database(fresh.direct_url, size=size) as database:
        inside = asyncio.Event()

        async def hold() -> None:
            async with database.engine() as conn:
                inside.set()
                await conn.execute("select pg_sleep(60)")

        task = asyncio.create_task(hold())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await _backend(database)


async def test_an_unreachable_database_raises_with_the_setting_to_check() -> None:
    size = PoolSize(timeout=0.1)
    with pytest.raises(StoreUnavailable, match="DULY_DATABASE_URL"):
        async with Database("postgresql://none@127.0.0.1:1/none", size=size):
            pass


async def test_a_deadlock_is_retried_and_other_errors_are_not() -> None:
    tries: list[int] = []

    async def deadlocked_twice() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise psycopg.errors.DeadlockDetected
        return "done"

    async def broken() -> str:
        tries.append(1)
        raise psycopg.errors.UndefinedTable

    assert await retry_transaction(deadlocked_twice) == "done"
    tries.clear()
    with pytest.raises(psycopg.errors.UndefinedTable):
        await retry_transaction(broken)
    assert len(tries) == 1


@pytest.mark.parametrize("ending", ["commit", "rollback"])
async def test_a_session_cannot_be_committed_or_rolled_back_by_its_user(
    database: Database, ending: str
) -> None:
    with pytest.raises(StoreError, match="session"):
        async with database.tenant(uuid.uuid4()) as conn:
            await getattr(conn, ending)()


async def test_a_transaction_that_ended_inside_the_session_raises(database: Database) -> None:
    with pytest.raises(StoreError, match="already ended"):
        async with database.tenant(uuid.uuid4()) as conn:
            await conn.execute("commit")
    with pytest.raises(StoreError, match="already ended"):
        async with database.engine() as conn:
            with suppress(psycopg.errors.UndefinedTable):
                await conn.execute("select * from nowhere")
    async with database.engine() as conn:
        assert (await (await conn.execute("select current_user")).fetchone()) == ("duly_engine",)


async def test_a_caller_may_use_savepoints(database: Database) -> None:
    org = uuid.uuid4()
    async with database.engine() as conn:
        with pytest.raises(psycopg.errors.UniqueViolation):
            async with conn.transaction():
                for _ in range(2):
                    await conn.execute(
                        "insert into duly.organizations (org_id, name) values (%s, 'x')", [org]
                    )
        cursor = await conn.execute("select count(*) from duly.organizations where org_id = %s", [org])
        assert await cursor.fetchone() == (0,)


async def test_leaving_a_session_on_an_unresponsive_connection_does_not_block(
    fresh: FreshDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duly.db.database._ROLLBACK_TIMEOUT", 0.1)

    class CallerError(Exception):
        """An error of the caller inside the session."""

    async with asyncio.timeout(60), Proxy(fresh.direct_url) as proxy, Database(proxy.url) as database:
        with pytest.raises(CallerError):
            async with database.tenant(uuid.uuid4()):
                proxy.drop_traffic()
                raise CallerError
        assert await _backend(database)


async def test_engine_connections_keep_the_engine_role_and_refuse_tenant_sessions(
    fresh: FreshDatabase,
) -> None:
    """They are not used as a tenant: after an early commit of a handler they would continue as the engine."""
    session_query = (
        "select current_user::text, current_setting('duly.org_id', true), current_setting('enable_seqscan')"
    )
    org, size = uuid.uuid4(), PoolSize(1, 1)
    async with Database(
        fresh.url, pooled=fresh.url != fresh.direct_url, size=size, engine_only=True
    ) as database:
        for _ in range(2):
            async with database.engine_autocommit() as conn:
                session = await (await conn.execute(session_query)).fetchone()
            assert session is not None
            assert (session[0], session[1] or "", session[2]) == ("duly_engine", "", "off")
            if fresh.url != fresh.direct_url:
                continue
            with pytest.raises(StoreError, match="engine alone"):
                async with database.tenant(org):
                    pass
            with pytest.raises(StoreError, match="engine alone"):
                await database.tenant_statement(org, session_query, {})


async def test_a_failed_statement_leaves_its_connection_usable(database: Database) -> None:
    org = uuid.uuid4()
    with pytest.raises(psycopg.errors.UndefinedTable):
        await database.tenant_statement(org, "select * from nowhere", {})
    assert await database.tenant_statement(org, "select %(n)s::text", {"n": "it's; 1"}) == [("it's; 1",)]


@pytest.mark.parametrize("conforming", ["on", "off"])
async def test_a_value_of_a_statement_is_never_read_as_sql(
    fresh: FreshDatabase, sql: psycopg.Connection, conforming: str
) -> None:
    sql.execute(f"alter database {sql.info.dbname} set standard_conforming_strings = {conforming}")
    texts = ["", "'", "\\", "\\'", "\\\\' or 1=1 --", "$$", "%(n)s %% %s", "\n", "ü\U0001f600", "e'x'"]
    async with Database(fresh.url, pooled=fresh.url != fresh.direct_url) as database:
        for text in texts:
            values = {"n": text, "one": -1, "none": None, "yes": True}
            query = "select %(n)s::text, 5 -%(one)s, %(none)s::text, %(yes)s, '%%'"
            found = await database.tenant_statement(uuid.uuid4(), query, values)
            assert found == [(text, 6, None, True, "%")]


async def test_a_notification_is_sent_after_the_commit(database: Database, sql: psycopg.Connection) -> None:
    sql.execute("listen duly_ready")
    rows = await database.tenant_statement(uuid.uuid4(), "select 1", {}, notify="duly_ready")
    assert rows == [(1,)]
    assert [found.channel for found in sql.notifies(timeout=10, stop_after=1)] == ["duly_ready"]
    with pytest.raises(psycopg.errors.DivisionByZero):
        await database.tenant_statement(uuid.uuid4(), "select 1 / 0", {}, notify="duly_ready")
    assert not list(sql.notifies(timeout=0.1))


async def test_an_engine_statement_runs_on_a_replaced_connection(
    fresh: FreshDatabase, sql: psycopg.Connection
) -> None:
    async with Database(fresh.direct_url, engine_only=True) as database:
        for _ in range(2):
            async with database.engine_autocommit() as conn:
                assert await (await conn.execute("select current_user::text")).fetchone() == ("duly_engine",)
            sql.execute(KILL)


async def test_canceling_during_discard_plans_leaks_no_connection(
    fresh: FreshDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duly.db.database._PLAN_LIFETIME", -1.0)
    size = PoolSize(min_size=1, max_size=1, timeout=5)
    async with Database(fresh.direct_url, size=size, engine_only=True) as database:
        real, discarding = AsyncCursor.execute, asyncio.Event()

        async def stuck(self: AsyncCursor, query: str, *values: object, **options: object) -> object:
            if query == "discard plans":
                discarding.set()
                await asyncio.Event().wait()
            return await real(self, query, *values, **options)  # type: ignore[arg-type]

        with monkeypatch.context() as patched:
            patched.setattr(AsyncCursor, "execute", stuck)
            task = asyncio.create_task(_backend(database))
            await discarding.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await _backend(database)


async def test_a_waiting_caller_gets_the_next_free_connection(fresh: FreshDatabase) -> None:
    size = PoolSize(min_size=2, max_size=2, timeout=20)
    async with Database(fresh.direct_url, size=size, engine_only=True) as database:
        async with database.engine(), database.engine():
            third = asyncio.create_task(_backend(database))
            await asyncio.wait([third], timeout=0.1)
            assert not third.done()
        assert await third
