"""A misbehaving job or connection does not affect other jobs."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest

from duly import Context, Duly, Retry, Status, SyncContext
from duly.db import database as session
from duly.testing import FreshDatabase
from tests.worker import isolated_jobs
from tests.worker.proxy import Proxy
from tests.worker.working import ONE_ATTEMPT, RETRY_AT_ONCE, WAIT_TIMEOUT, seconds, working


@pytest.fixture
def echo(app: Duly):
    """A job type that returns its argument."""

    @app.job("test.echo")
    async def echo(n: int) -> int:
        return n

    return echo


async def test_a_very_long_dependency_name_stops_no_job(app: Duly, acting: uuid.UUID, echo) -> None:
    @app.job("test.flaky", retry=RETRY_AT_ONCE)
    async def flaky(ctx: Context, names: str) -> int:
        if ctx.attempt == 1:
            raise Retry("not yet", dependency=names)
        return ctx.attempt

    names = "".join(str(uuid.uuid4()) for _ in range(300)) + "ü\n"
    handles = [await flaky.enqueue(names), *[await echo.enqueue(n) for n in range(5)]]
    async with working(app):
        assert [await handle.result(WAIT_TIMEOUT) for handle in handles] == [2, 0, 1, 2, 3, 4]


async def test_a_handler_that_cancels_its_own_task_ends_with_consistent_effects(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, echo
) -> None:
    sql.execute("create table effects (attempt integer); grant insert on effects to public")

    @app.job("test.own_end", retry=RETRY_AT_ONCE)
    async def own_end(ctx: Context) -> str:
        async with ctx.transaction() as conn:
            await conn.execute("insert into effects values (%s)", [ctx.attempt])
        task = asyncio.current_task()
        assert task
        task.cancel()
        return "done"

    handle = await own_end.enqueue()
    async with working(app):
        job = await handle.wait(WAIT_TIMEOUT)
        assert await (await echo.enqueue(1)).result(WAIT_TIMEOUT) == 1
    [count] = sql.execute("select count(*) from effects").fetchone() or ()
    assert (job.status, count) in ((Status.COMPLETED, 1), (Status.FAILED, 0))


async def test_an_open_transaction_delays_only_the_job_it_locks(
    app: Duly, acting: uuid.UUID, echo, monkeypatch: pytest.MonkeyPatch, fresh: FreshDatabase
) -> None:
    monkeypatch.setattr(session, "_LOCK_TIMEOUT", "lock_timeout = '100ms'")
    inside, go = asyncio.Event(), asyncio.Event()

    @app.job("test.single")
    async def single(n: int) -> int:
        inside.set()
        await go.wait()
        return n

    alone = single.options(run_identity="the only one")
    handle = await alone.enqueue(1)
    async with working(app) as worker:
        await inside.wait()
        async with await psycopg.AsyncConnection.connect(fresh.url) as conn:
            joined = await alone.options(conn=conn, idempotency_key="second").enqueue(2)
            assert joined.job_id == handle.job_id
            go.set()
            await worker.loop_events.wait("ended")
            others = [await echo.enqueue(n) for n in range(5)]
            assert [await other.result(WAIT_TIMEOUT) for other in others] == list(range(5))
            assert (await handle.status()).status is Status.RUNNING
            await conn.rollback()
        assert await handle.result(WAIT_TIMEOUT) == 1


async def test_retries_beyond_the_budget_are_spaced_out(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("test.broken", retry=RETRY_AT_ONCE)
    async def broken(n: int) -> None:
        raise ValueError("down")

    await app.enqueue_many([broken.call(n) for n in range(20)])
    async with working(app, retries_per_second=0.1, retry_burst=1) as worker:
        await worker.loop_events.wait("settled", 20)
    waits = [row[0] for row in sql.execute("select run_at from duly.scheduled order by run_at").fetchall()]
    gaps = [later - sooner for sooner, later in pairwise(waits)]
    assert len(gaps) >= 16
    assert all(abs(gap - timedelta(seconds=10)) < timedelta(seconds=2) for gap in gaps[2:]), gaps


async def test_jobs_that_wait_for_a_process_do_not_delay_other_jobs(
    isolated: Duly, acting: uuid.UUID, tmp_path: Path, sql: psycopg.Connection
) -> None:
    async with working(isolated, isolated=1, cancel_grace=seconds(0.05)) as worker:
        waiting = [
            await isolated_jobs.uncancelable.options(priority=9).enqueue(str(tmp_path / str(n)))
            for n in range(5)
        ]
        await worker.loop_events.wait("started", 2)
        child = await isolated_jobs.child.enqueue("free")
        assert (await child.wait(WAIT_TIMEOUT)).status is Status.COMPLETED
        for handle in waiting:
            await handle.cancel("enough")
    starts = sql.execute("select count(*) from duly.event_log where event_type = 'job.started'").fetchone()
    assert starts
    assert starts[0] < 30, "waiting jobs are not claimed again and again"


async def test_subprocesses_of_a_killed_process_are_killed_with_it(
    isolated: Duly, acting: uuid.UUID, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    async with working(isolated):
        job = await (await isolated_jobs.start_subprocess.enqueue(str(pid_file))).wait(WAIT_TIMEOUT)
    assert job.error_code == "run.timeout"
    pid = int(pid_file.read_text())
    assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2]


async def test_an_isolated_handler_may_use_a_process_pool(isolated: Duly, acting: uuid.UUID) -> None:
    async with working(isolated):
        assert await (await isolated_jobs.use_process_pool.enqueue()).result(WAIT_TIMEOUT) == [1, 2]


async def test_the_transaction_of_a_sync_handler_that_times_out_is_rolled_back(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, echo
) -> None:
    sql.execute("create table effects (n integer); grant insert on effects to public")
    out = threading.Barrier(5)

    @app.job("test.slow_write", retry=ONE_ATTEMPT, timeout=seconds(0.3))
    def slow_write(ctx: SyncContext, n: int) -> None:
        try:
            with ctx.transaction() as conn:
                conn.execute("insert into effects values (%s)", [n])
                conn.execute("select pg_sleep(30)")
        finally:
            out.wait(WAIT_TIMEOUT)

    handles = [await slow_write.enqueue(n) for n in range(4)]
    async with working(app):
        ended = [await handle.wait(WAIT_TIMEOUT) for handle in handles]
        await asyncio.to_thread(out.wait, WAIT_TIMEOUT)
        assert await (await echo.enqueue(1)).result(WAIT_TIMEOUT) == 1
    assert {job.error_code for job in ended} == {"run.timeout"}
    assert sql.execute("select count(*) from effects").fetchone() == (0,)


@pytest.fixture
async def proxy(fresh: FreshDatabase) -> AsyncIterator[Proxy]:
    async with Proxy(fresh.url) as opened:
        yield opened


async def test_unresponsive_connections_are_replaced(
    proxy: Proxy, fresh: FreshDatabase, acting: uuid.UUID, tmp_path: Path, sql: psycopg.Connection
) -> None:
    app = Duly(
        database_url=proxy.url,
        database_direct_url=fresh.direct_url,
        blobs_url=str(tmp_path),
        maintenance=False,
    )

    @app.job("test.echo")
    async def echo(n: int) -> int:
        return n

    async with working(app, lease=seconds(1.5), heartbeat=seconds(0.2), poll=seconds(0.1)) as worker:
        assert await (await echo.enqueue(1)).result(WAIT_TIMEOUT) == 1
        await worker.loop_events.wait("idle", worker.loop_events.counts["idle"] + 1)
        proxy.drop_traffic()
        [job] = await _enqueue_directly(fresh, tmp_path, acting)
        done = "select status = 'completed' from duly.jobs where job_id = %s"
        while sql.execute(done, [job]).fetchone() != (True,):
            await asyncio.to_thread(lambda: None)
    await app.close()


async def _enqueue_directly(fresh: FreshDatabase, tmp_path: Path, org: uuid.UUID) -> list[uuid.UUID]:
    """Enqueue with an application that does not use the proxy."""
    async with Duly(database_url=fresh.direct_url, blobs_url=str(tmp_path), maintenance=False) as other:

        @other.job("test.echo")
        async def echo(n: int) -> int:
            return n

        return [(await echo.enqueue(2)).job_id]
