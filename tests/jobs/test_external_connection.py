"""Enqueueing in the caller's transaction, on every supported kind of connection."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from typing import Any

import asyncpg
import django.conf
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from sqlalchemy import create_engine, orm, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from duly import Duly, Job, errors
from duly.testing import FreshDatabase

_INSERT = "insert into note (body) values ('ours')"

Opener = Callable[[str], AbstractAsyncContextManager[Any]]
SyncOpener = Callable[[str], AbstractContextManager[Any]]


class _Rollback(Exception):
    """Raised to roll a transaction back."""


class OwnSession(AsyncSession):
    """A subclass, as applications define them."""


@asynccontextmanager
async def _psycopg(url: str, **kwargs: Any) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(url, **kwargs) as conn:
        yield conn


@asynccontextmanager
async def _asyncpg(url: str) -> AsyncIterator[Any]:
    conn = await asyncpg.connect(url)
    yield conn
    await conn.close()


@asynccontextmanager
async def _asyncpg_pool(url: str) -> AsyncIterator[Any]:
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as conn:
        yield conn


def _sqlalchemy(dialect: str, session: type[AsyncSession] | None = None) -> Opener:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Any]:
        arguments = {"dsn": url} if dialect == "asyncpg" else conninfo_to_dict(url)
        engine = create_async_engine(f"postgresql+{dialect}://", connect_args=arguments)
        async with session(engine) if session else engine.connect() as conn:
            yield conn
        await engine.dispose()

    return opened


ASYNC: dict[str, Opener] = {
    "psycopg": _psycopg,
    "psycopg with dict rows": lambda url: _psycopg(url, row_factory=dict_row),
    "asyncpg": _asyncpg,
    "asyncpg pool": _asyncpg_pool,
    "sqlalchemy connection on psycopg": _sqlalchemy("psycopg"),
    "sqlalchemy connection on asyncpg": _sqlalchemy("asyncpg"),
    "sqlalchemy session on psycopg": _sqlalchemy("psycopg", AsyncSession),
    "sqlalchemy session on asyncpg": _sqlalchemy("asyncpg", AsyncSession),
    "sqlalchemy session of the application": _sqlalchemy("psycopg", OwnSession),
}


@contextmanager
def _sync_sqlalchemy(url: str, *, session: bool) -> Iterator[Any]:
    engine = create_engine("postgresql+psycopg://", connect_args=conninfo_to_dict(url))
    with orm.Session(engine) if session else engine.connect() as conn:
        yield conn
    engine.dispose()


@contextmanager
def _django(url: str) -> Iterator[Any]:
    if not django.conf.settings.configured:
        django.conf.settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.postgresql"}})
        django.setup()
    from django.db import connection

    parts = conninfo_to_dict(url)
    parameters = {name.upper(): str(parts.get(name) or "") for name in ("host", "port", "user", "password")}
    connection.settings_dict.update(NAME=parts["dbname"], **parameters)
    yield connection
    connection.close()


SYNC: dict[str, SyncOpener] = {
    "psycopg": lambda url: psycopg.connect(url),
    "psycopg with dict rows": lambda url: psycopg.connect(url, row_factory=dict_row),
    "sqlalchemy connection": lambda url: _sync_sqlalchemy(url, session=False),
    "sqlalchemy session": lambda url: _sync_sqlalchemy(url, session=True),
    "django": _django,
}


def transaction(conn: Any) -> Any:
    """Begin the caller's transaction with the API of its library."""
    if type(conn).__module__.startswith("django"):
        from django.db import transaction

        return transaction.atomic()
    return conn.transaction() if hasattr(conn, "transaction") else conn.begin()


def insert(conn: Any) -> Any:
    """Insert a row of the caller; awaitable on an async connection."""
    if type(conn).__module__.startswith("django"):
        return conn.cursor().execute(_INSERT)
    return conn.execute(text(_INSERT) if hasattr(conn, "begin") else _INSERT)


@pytest.fixture(params=ASYNC)
async def conn(request: pytest.FixtureRequest, fresh: FreshDatabase) -> AsyncIterator[Any]:
    async with ASYNC[request.param](fresh.direct_url) as opened:
        yield opened


@pytest.fixture(params=SYNC)
def sync_conn(request: pytest.FixtureRequest, app: Duly, fresh: FreshDatabase) -> Iterator[Any]:
    with SYNC[request.param](fresh.direct_url) as opened:
        yield opened
    app.close_sync()


@pytest.fixture
def build(app: Duly, acting: uuid.UUID, sql: psycopg.Connection) -> Job[[str], None]:
    sql.execute("create table note (body text)")

    @app.job("report.build")
    async def build(region: str) -> None: ...

    return build


def notes(sql: psycopg.Connection) -> int:
    return len(sql.execute("select from note").fetchall())


def stored(sql: psycopg.Connection) -> list[int]:
    tables = ("job_records", "all_events", "key_ledger", "ready")
    return [len(sql.execute(f"select from duly.{table}").fetchall()) for table in tables]


async def test_the_job_commits_with_the_callers_row(
    build: Job[[str], None], conn: Any, sql: psycopg.Connection
) -> None:
    async with transaction(conn):
        await insert(conn)
        handle = await build.options(conn=conn).enqueue("DE")
        assert handle.created
        with pytest.raises(errors.UnknownJob):
            await handle.status()
    assert (await handle.status()).status == "queued"
    assert (notes(sql), stored(sql)) == (1, [1, 1, 1, 1])


async def test_the_job_rolls_back_with_the_callers_row(
    build: Job[[str], None], conn: Any, sql: psycopg.Connection
) -> None:
    with suppress(_Rollback):
        async with transaction(conn):
            await insert(conn)
            lost = await build.options(conn=conn).enqueue("DE")
            raise _Rollback
    with pytest.raises(errors.UnknownJob):
        await lost.status()
    assert (notes(sql), stored(sql)) == (0, [0, 0, 0, 0])
    async with transaction(conn):
        again = await build.options(conn=conn).enqueue("DE")
    assert again.created
    assert (await again.status()).job_id == again.job_id != lost.job_id


async def test_a_batch_keeps_its_order_and_deduplicates(
    app: Duly, build: Job[[str], None], conn: Any
) -> None:
    first = await build.enqueue("FR")
    async with transaction(conn):
        handles = await app.enqueue_many([build.call(region) for region in ("DE", "FR", "DE")], conn=conn)
    assert [h.created for h in handles] == [True, False, False]
    assert [h.job_id for h in handles] == [handles[0].job_id, first.job_id, handles[0].job_id]
    assert (await handles[0].status()).status == "queued"


async def test_a_refusal_raises_an_error_of_duly(build: Job[[str], None], conn: Any) -> None:
    with pytest.raises(errors.UnknownOrg) as caught:
        async with transaction(conn):
            await build.options(conn=conn, org_id=uuid.uuid4()).enqueue("DE")
    assert (caught.value.message, caught.value.field) == ("no active org of this id", "org_id")
    assert caught.value.fix == "create the org first"


async def test_an_unknown_project_raises_an_error_of_duly(build: Job[[str], None], conn: Any) -> None:
    with pytest.raises(errors.UnknownProject):
        async with transaction(conn):
            await build.options(conn=conn, project_id=uuid.uuid4()).enqueue("DE")


def test_the_job_commits_with_the_callers_row_without_async(
    build: Job[[str], None], sync_conn: Any, sql: psycopg.Connection
) -> None:
    with transaction(sync_conn):
        insert(sync_conn)
        handle = build.options(conn=sync_conn).enqueue_sync("DE")
        with pytest.raises(errors.UnknownJob):
            handle.status()
    assert handle.status().status == "queued"
    assert (notes(sql), stored(sql)) == (1, [1, 1, 1, 1])


def test_the_job_rolls_back_with_the_callers_row_without_async(
    build: Job[[str], None], sync_conn: Any, sql: psycopg.Connection
) -> None:
    with suppress(_Rollback), transaction(sync_conn):
        insert(sync_conn)
        lost = build.options(conn=sync_conn).enqueue_sync("DE")
        raise _Rollback
    assert (notes(sql), stored(sql)) == (0, [0, 0, 0, 0])
    with transaction(sync_conn):
        again = build.options(conn=sync_conn).enqueue_sync("DE")
    assert again.created
    assert again.status().job_id != lost.job_id


def test_a_batch_without_async(app: Duly, build: Job[[str], None], sync_conn: Any) -> None:
    with transaction(sync_conn):
        handles = app.enqueue_many_sync([build.call("DE"), build.call("DE")], conn=sync_conn)
    assert [h.created for h in handles] == [True, False]
    assert handles[1].status().status == "queued"


def test_a_refusal_raises_an_error_of_duly_without_async(build: Job[[str], None], sync_conn: Any) -> None:
    with pytest.raises(errors.UnknownOrg) as caught, transaction(sync_conn):
        build.options(conn=sync_conn, org_id=uuid.uuid4()).enqueue_sync("DE")
    assert (caught.value.field, caught.value.fix) == ("org_id", "create the org first")


async def test_enqueueing_on_a_sync_connection_cannot_be_awaited(
    build: Job[[str], None], sql: psycopg.Connection
) -> None:
    with pytest.raises(errors.ContractError, match="psycopg Connection") as caught:
        await build.options(conn=sql).enqueue("DE")
    assert (caught.value.field, caught.value.fix) == ("conn", "use enqueue_sync")


async def test_enqueueing_on_an_async_connection_must_be_awaited(
    app: Duly, build: Job[[str], None], fresh: FreshDatabase
) -> None:
    async with _psycopg(fresh.direct_url) as conn:
        with pytest.raises(errors.ContractError, match="psycopg AsyncConnection") as caught:
            build.options(conn=conn).enqueue_sync("DE")
    app.close_sync()
    assert (caught.value.field, caught.value.fix) == ("conn", "use await enqueue")


async def test_a_value_that_is_not_a_connection_is_refused(
    app: Duly, build: Job[[str], None], fresh: FreshDatabase
) -> None:
    engine = create_async_engine("postgresql+psycopg://", connect_args=conninfo_to_dict(fresh.direct_url))
    async with asyncpg.create_pool(fresh.direct_url, min_size=1) as pool:
        for wrong in ("postgresql://", pool, engine):
            with pytest.raises(errors.ContractError, match=f"on a {type(wrong).__name__}") as caught:
                await build.options(conn=wrong).enqueue("DE")
            assert (caught.value.field, caught.value.fix) == (
                "conn",
                "pass a connection of psycopg, asyncpg, SQLAlchemy or Django",
            )
            with pytest.raises(errors.ContractError, match=f"on a {type(wrong).__name__}"):
                build.options(conn=wrong).enqueue_sync("DE")
    app.close_sync()


async def test_a_large_payload_is_stored_as_a_blob(build: Job[[str], None], conn: Any) -> None:
    async with transaction(conn):
        handle = await build.options(conn=conn).enqueue("x" * 40_000)
    assert (await handle.status()).request_payload_ref


async def test_workers_are_notified_at_the_commit(build: Job[[str], None], fresh: FreshDatabase) -> None:
    def notifications(listener: psycopg.Connection, timeout: float) -> list[str]:
        return [n.channel for n in listener.notifies(timeout=timeout, stop_after=1)]

    async with _psycopg(fresh.direct_url) as conn:
        with psycopg.connect(fresh.direct_url, autocommit=True) as listener:
            listener.execute("listen duly_ready")
            await build.options(conn=conn).enqueue("DE")
            await conn.rollback()
            assert notifications(listener, 0.1) == []
            await build.options(conn=conn).enqueue("DE")
            assert notifications(listener, 0.1) == []
            await conn.commit()
            assert notifications(listener, 10) == ["duly_ready"]
