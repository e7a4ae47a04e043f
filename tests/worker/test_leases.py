"""Leases: heartbeats continue under load, and a lost lease is detected."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import psycopg
import pytest

from duly import Context, Duly, Status, errors
from duly.maintenance.reaper import Reaper
from duly.testing import FreshDatabase
from tests.worker.working import (
    ONE_ATTEMPT,
    RETRY_AT_ONCE,
    WAIT_TIMEOUT,
    event_types,
    lose_all_workers,
    seconds,
    silent_worker,
    until,
    worker_row,
    working,
)


def age_heartbeat(sql: psycopg.Connection) -> None:
    """Let the last heartbeat be an hour old."""
    sql.execute("update duly.workers set heartbeat_at = now() - interval '1 hour'")


async def test_a_worker_registers_sends_heartbeats_and_records_its_stop(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    async with working(app, heartbeat=seconds(0.02), lease=seconds(5), slots=7) as worker:
        assert worker_row(sql, "worker_id") == worker.worker_id
        assert worker_row(sql, "(slots, lease, stopped_at is null)::text") == "(7,00:00:05,t)"
        await until(sql, "select heartbeat_at > started_at from duly.workers")
    assert worker_row(sql, "stopped_at is not null")


async def test_handlers_that_hold_every_connection_stop_neither_heartbeats_nor_finishes(
    fresh: FreshDatabase, acting: uuid.UUID, sql: psycopg.Connection, tmp_path: Path
) -> None:
    app = Duly(
        database_url=fresh.url,
        database_direct_url=fresh.direct_url if fresh.url != fresh.direct_url else None,
        blobs_url=str(tmp_path),
        pool_max=2,
        maintenance=False,
    )
    holding, go = asyncio.Semaphore(0), asyncio.Event()

    @app.job("test.hold")
    async def hold(ctx: Context, n: int) -> None:
        async with ctx.session():
            holding.release()
            await go.wait()
            await ctx.partial({"n": n})

    @app.job("test.free")
    async def free() -> str:
        return "free"

    for n in range(2):
        await hold.enqueue(n)
    async with working(app, heartbeat=seconds(0.02), lease=seconds(5)) as worker:
        await holding.acquire()
        await holding.acquire()
        beat = worker_row(sql, "heartbeat_at")
        await until(sql, f"select heartbeat_at > '{beat}' from duly.workers")
        settled = worker.loop_events.counts["settled"]
        go.set()
        await worker.loop_events.wait("settled", settled + 2)
    assert sql.execute("select count(*) from duly.jobs where status = 'completed'").fetchone() == (2,)
    await app.close()


async def test_a_worker_that_is_declared_lost_registers_again(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    inside, refused = asyncio.Event(), asyncio.Event()

    @app.job("test.slow")
    async def slow(ctx: Context) -> str:
        if ctx.attempt > 1:
            return "the second"
        inside.set()
        try:
            await asyncio.Event().wait()
        finally:
            with pytest.raises(errors.LeaseLost):
                await ctx.partial({"too": "late"})
            refused.set()
        return "the first"

    handle = await slow.enqueue()
    async with working(app, heartbeat=seconds(0.05), lease=seconds(30)) as worker:
        first_id = worker.worker_id
        await inside.wait()
        with sql.transaction():
            # Between two heartbeats, so that the next one finds the worker lost.
            sql.execute("select from duly.workers for update")
            age_heartbeat(sql)
            sql.execute("update duly.workers set lost_at = now()")
        await Reaper(app).once()
        await worker.loop_events.wait("declared lost")
        await refused.wait()
        assert await handle.result(WAIT_TIMEOUT) == "the second"
        assert worker.worker_id != first_id
    job = await handle.status()
    assert (job.attempt, job.partial_count) == (2, 0)
    assert await event_types(handle) == ["queued", "started", "lease_lost", "started", "completed"]


async def test_a_lost_lease_spends_the_attempt_and_the_last_one_is_a_dead_letter(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("test.once", retry=ONE_ATTEMPT)
    async def once() -> None:
        await asyncio.Event().wait()

    handle = await once.enqueue()
    worker = app.worker(heartbeat=seconds(10), lease=seconds(30), drain=seconds(0))
    await worker.start()
    await worker.loop_events.wait("started")
    await until(sql, "select heartbeat_at > started_at from duly.workers")  # the next is ten seconds away
    sql.execute("update duly.workers set lost_at = now()")
    await Reaper(app).once()
    await worker.stop()
    job = await handle.status()
    assert (job.status, job.outcome, job.error_code) == (Status.FAILED, "dead", "lease_lost")
    assert await event_types(handle) == ["queued", "started", "lease_lost", "deadlettered", "failed"]
    assert sql.execute("select count(*) from duly.dead_letters").fetchone() == (1,)
    assert worker.loop_events.counts["lost"] == 1, "the last write of the lost worker changed nothing"


async def test_a_silent_worker_is_lost_only_after_its_lease(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    async with working(app, heartbeat=seconds(5), lease=seconds(30)) as worker:
        await Reaper(app).once()
        assert worker_row(sql, "lost_at") is None
        await asyncio.to_thread(worker._heartbeat.stop)  # a heartbeat could interfere
        sql.execute("update duly.workers set heartbeat_at = now() - interval '31 s'")
        await Reaper(app).once()
        assert worker_row(sql, "lost_at") is not None


async def test_a_disconnected_listener_reconnects(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("test.quick")
    async def quick(n: int) -> int:
        return n

    async with working(app, poll=seconds(600)) as worker:
        await worker.listening.wait()
        listeners = "from pg_stat_activity where query like 'listen %' and datname = current_database()"
        assert sql.execute(f"select pg_terminate_backend(pid) {listeners}").fetchall() == [(True,)]
        while worker.listening.is_set():
            await asyncio.to_thread(lambda: None)
        await worker.listening.wait()
        assert await (await quick.enqueue(1)).result(WAIT_TIMEOUT) == 1


async def test_a_worker_without_notifications_claims_jobs_by_polling(app: Duly, acting: uuid.UUID) -> None:
    @app.job("test.quick")
    async def quick(n: int) -> int:
        return n

    await app.resources()  # the schema is checked before the direct URL becomes unreachable
    vars(app)["database_urls"] = app.database_urls._replace(direct_url="postgresql://127.0.0.1:1/nowhere")
    async with working(app, poll=seconds(0.05)) as worker:
        await worker.loop_events.wait("idle")
        assert await (await quick.enqueue(1)).result(WAIT_TIMEOUT) == 1
        assert not worker.listening.is_set()


async def test_a_worker_declared_lost_claims_nothing_until_it_registers_again(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("test.quick")
    async def quick(n: int) -> int:
        return n

    async with silent_worker(app, sql, poll=seconds(0.02), heartbeat=seconds(2)) as worker:
        assert await (await quick.enqueue(1)).result(WAIT_TIMEOUT) == 1
        await lose_all_workers(app, sql)
        handle = await quick.enqueue(2)
        idle = worker.loop_events.counts["idle"]
        await worker.loop_events.wait("idle", idle + 3)
        assert (await handle.status()).status is Status.QUEUED
        assert await handle.result(WAIT_TIMEOUT) == 2, "it has registered again"
        assert worker.loop_events.counts["declared lost"] == 1
    assert sql.execute("select count(*), count(stopped_at) from duly.workers").fetchone() == (2, 1)


async def test_heartbeats_continue_after_a_disconnect(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    beating = (
        "from pg_stat_activity where query like 'update duly.workers set heartbeat_at%' "
        "and datname = current_database() and pid <> pg_backend_pid()"
    )
    async with working(app, heartbeat=seconds(0.05), lease=seconds(30)) as worker:
        first_id = worker.worker_id
        for _ in range(2):
            await until(sql, f"select bool_or(pg_terminate_backend(pid, 5000)) {beating}")
            beat = worker_row(sql, "heartbeat_at")
            await until(sql, f"select heartbeat_at > '{beat}' from duly.workers")
        assert worker.worker_id == first_id


async def test_an_invalid_policy_does_not_stop_the_takeover_of_claims(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("test.long", retry=RETRY_AT_ONCE)
    async def long(ctx: Context, n: int) -> int:
        if ctx.attempt == 1:
            await asyncio.Event().wait()
        return n

    handles = await app.enqueue_many([long.call(n) for n in range(3)])
    sql.execute(
        """update duly.job_records set policy = '{"retry": {"of_a_later_version": 1}}' where job_id = %s""",
        [handles[0].job_id],
    )
    async with silent_worker(app, sql, drain=seconds(0)) as worker:
        await worker.loop_events.wait("started", 3)
        await lose_all_workers(app, sql)
    async with working(app):
        assert [await handle.result(WAIT_TIMEOUT) for handle in handles] == [0, 1, 2]


async def test_many_claims_of_a_lost_worker_are_taken_over_in_batches(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("test.long")
    async def long(n: int) -> None:
        await asyncio.Event().wait()

    async with silent_worker(app, sql, drain=seconds(0), poll=seconds(0.01)) as worker:
        for n in range(25):
            await long.enqueue(n)
            await worker.loop_events.wait("started", n + 1)
        sql.execute("update duly.workers set heartbeat_at = now() - interval '1 hour'")
        reaper = Reaper(app)
        assert [await reaper.once() == seconds(0) for _ in range(2)] == [True, False]
    jobs = sql.execute("select status, attempt, count(*) from duly.jobs group by 1, 2").fetchall()
    assert jobs == [("queued", 1, 25)]
