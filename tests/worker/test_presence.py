"""Presence: an advisory lock on the connection of the heartbeat shows that its worker process is alive."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duly import Duly
from duly.maintenance.reaper import Reaper
from duly.testing import DatabaseCluster, FreshDatabase
from duly.worker import heartbeat
from duly.worker import workers_store as workers
from tests.features.doctor.test_doctor import pooled
from tests.worker.working import WAIT_TIMEOUT, seconds, until, worker_row, working

HOLDERS = """
    select pid from pg_locks where locktype = 'advisory' and granted and mode = 'ShareLock'
        and database = (select oid from pg_database where datname = current_database())
        and (classid::bigint << 32 | objid::bigint) = uuid_hash_extended('{}', 0)
"""


@pytest.fixture
async def app(fresh: FreshDatabase, tmp_path: Path) -> AsyncIterator[Duly]:
    """An application on the direct URL, without a pooler."""
    opened = Duly(database_url=fresh.direct_url, blobs_url=str(tmp_path / "blobs"), maintenance=False)
    yield opened
    await opened.close()


async def until_present(sql: psycopg.Connection[Any], worker_id: uuid.UUID) -> int:
    """Wait until the worker holds its presence lock and has recorded it; return the backend that holds it."""
    has_silence = f"select silence is not null from duly.workers where worker_id = '{worker_id}'"
    await until(sql, f"select exists ({HOLDERS.format(worker_id)}) and ({has_silence})")
    [pid] = sql.execute(HOLDERS.format(worker_id)).fetchone() or (0,)
    return int(pid)


async def test_a_worker_is_present_until_it_stops(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    async with working(app, heartbeat=seconds(0.2)) as worker:
        await until_present(sql, worker.worker_id)
        assert worker_row(sql, "silence") == seconds(0.4)
    await until(sql, f"select not exists ({HOLDERS.format(worker.worker_id)})")
    assert worker_row(sql, "stopped_at is not null and lost_at is null")


async def test_a_worker_reconnects_after_the_server_ended_its_connection_and_keeps_its_jobs(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    go = asyncio.Event()

    @app.job("test.long")
    async def long() -> str:
        await go.wait()
        return "done"

    handle, reaper = await long.enqueue(), Reaper(app)
    async with working(app, heartbeat=seconds(0.2)) as worker:
        first_id = worker.worker_id
        for _ in range(5):
            pid = await until_present(sql, first_id)
            await reaper.once()
            sql.execute("select pg_terminate_backend(%s, 5000)", [pid])
            await reaper.once()
            assert await until_present(sql, first_id) != pid
        await reaper.once()
        go.set()
        assert await handle.result(WAIT_TIMEOUT) == "done"
        assert worker.worker_id == first_id
    assert (await handle.status()).attempt == 1
    assert sql.execute("select count(*), count(lost_at) from duly.workers").fetchone() == (1, 0)


async def test_a_working_presence_connection_is_replaced_without_a_pause(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "_RETRY_PAUSE", 3600)
    async with working(app, heartbeat=seconds(9)) as worker:
        pid = await until_present(sql, worker.worker_id)
        sql.execute("select pg_terminate_backend(%s, 5000)", [pid])
        worker._heartbeat.nudge()
        assert await until_present(sql, worker.worker_id) != pid


async def test_a_worker_that_registers_again_is_present_under_its_new_id(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    async with working(app, heartbeat=seconds(0.05)) as worker:
        first_id = worker.worker_id
        await until_present(sql, first_id)
        sql.execute("update duly.workers set lost_at = now()")
        await worker.loop_events.wait("declared lost")
        await until_present(sql, worker.worker_id)
        assert worker.worker_id != first_id
        assert sql.execute(HOLDERS.format(first_id)).fetchall() == []


async def test_a_worker_before_its_first_heartbeat_is_not_absent(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise psycopg.OperationalError("too many clients already")

    monkeypatch.setattr(workers, "hold_presence", refuse)
    async with working(app, heartbeat=seconds(0.05)):
        await until(sql, "select now() > started_at + interval '0.3 s' from duly.workers")
        async with (await app.resources()).database.engine() as conn:
            assert await workers.list_absent(conn) == {}


async def test_a_worker_behind_a_pooler_holds_no_presence_lock(
    fresh: FreshDatabase, acting: uuid.UUID, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    direct, blobs = fresh.direct_url, str(tmp_path)
    app = Duly(database_url=fresh.url, database_direct_url=direct, blobs_url=blobs, maintenance=False)
    async with app, working(app, heartbeat=seconds(0.05)) as worker:
        await until(sql, "select heartbeat_at > started_at from duly.workers")
        assert worker_row(sql, "silence") is None
        assert sql.execute(HOLDERS.format(worker.worker_id)).fetchall() == []


async def test_presence_is_refused_behind_an_undeclared_pooler(
    cluster: DatabaseCluster, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker_id = uuid.uuid4()
    with pooled(cluster, "transaction", sql.info.dbname, monkeypatch) as url:
        with psycopg.connect(url, autocommit=True, prepare_threshold=None) as conn:
            assert not workers.hold_presence(conn, worker_id)
        assert sql.execute(HOLDERS.format(worker_id)).fetchall() == []
