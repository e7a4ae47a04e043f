"""A stopping worker waits for running jobs, and requeues the rest without spending attempts."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import uuid
from pathlib import Path

import psycopg
import pytest

from duly import Actor, Cancel, Context, Duly, Fail, Retry, Snooze, Status, errors
from duly.worker import worker as worker_module
from tests.worker import isolated_jobs
from tests.worker.working import (
    ONE_ATTEMPT,
    WAIT_TIMEOUT,
    event_types,
    run_until_ended,
    seconds,
    until,
    working,
)


async def test_a_drain_waits_for_running_jobs(app: Duly, acting: uuid.UUID) -> None:
    inside, go = asyncio.Event(), asyncio.Event()

    @app.job("test.last")
    async def last(ctx: Context) -> bool:
        inside.set()
        await go.wait()
        return ctx.draining

    handle = await last.enqueue()
    worker = app.worker()
    await worker.start()
    await inside.wait()
    stopping = asyncio.create_task(worker.stop())
    await worker.loop_events.wait("draining")
    go.set()
    await stopping
    assert await handle.result() is True, "ctx.draining is set while the worker stops"


async def test_a_requested_drain_finishes_running_jobs_claims_no_more_and_stops_the_worker(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    inside, go = asyncio.Event(), asyncio.Event()

    @app.job("test.last")
    async def last() -> None:
        inside.set()
        await go.wait()

    first = await last.enqueue()
    async with working(app, heartbeat=seconds(0.05), drain=seconds(WAIT_TIMEOUT)) as worker:
        await inside.wait()
        for reason in ("a new version", "the second request is ignored"):
            drained = await app.queues.drain(worker.worker_id, actor=Actor.operator("anna"), reason=reason)
            assert (drained.drain_requested_by, drained.drain_reason) == ("operator:anna", "a new version")
        await worker.retired.wait()
        second = await last.options(idempotency_key="2").enqueue()
        assert worker.why_not_ready == ["it is draining"]
        await until(sql, "select draining_at is not null from duly.workers")
        go.set()
        await worker.loop_events.wait("drained")
        stopped = sql.execute("select stopped_at is not null from duly.workers").fetchone()
        assert stopped == (True,), "although the block of the worker is still open"
        with pytest.raises(errors.UnknownWorker):
            await app.queues.drain(str(worker.worker_id), actor=Actor.operator("anna"), reason="again")
    assert ((await first.status()).status, (await second.status()).status) == (
        Status.COMPLETED,
        Status.QUEUED,
    )
    audited = sql.execute("select action, reason, detail ->> 'name' from duly.audit_entries").fetchall()
    assert audited == [("worker.drain_requested", "a new version", drained.name)]


async def test_a_job_still_running_after_the_drain_is_requeued_without_spending_the_attempt(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    inside = asyncio.Event()

    @app.job("test.long")
    async def long(ctx: Context) -> int:
        if not inside.is_set():
            inside.set()
            await asyncio.Event().wait()
        return ctx.attempt

    handle = await long.enqueue()
    async with working(app, drain=seconds(0)):
        await inside.wait()
    job = await handle.status()
    assert (job.status, job.attempt) == (Status.QUEUED, 0)
    assert sql.execute("select count(*) from duly.claims").fetchone() == (0,)
    assert (await run_until_ended(app, handle)).attempt == 1
    assert await handle.result() == 1
    assert await event_types(handle) == ["queued", "started", "snoozed", "started", "completed"]


async def test_a_canceled_stop_leaves_no_heartbeat_thread(app: Duly, acting: uuid.UUID) -> None:
    inside = asyncio.Event()

    @app.job("test.long")
    async def long() -> None:
        inside.set()
        await asyncio.Event().wait()

    await long.enqueue()
    worker = app.worker(drain=seconds(WAIT_TIMEOUT))
    await worker.start()
    await inside.wait()
    stopping = asyncio.create_task(worker.stop())
    await worker.loop_events.wait("draining")
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert "duly-heartbeat" not in {thread.name for thread in threading.enumerate()}


async def test_a_worker_that_cannot_register_leaves_nothing_behind(
    isolated: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    connections = "select count(*) from pg_stat_activity where datname = current_database()"
    await isolated.resources()
    [(before,)] = sql.execute(connections).fetchall()
    sql.execute("alter table duly.workers rename to hidden")
    with pytest.raises(psycopg.errors.UndefinedTable):
        async with isolated.worker():
            raise AssertionError("the worker started")
    assert multiprocessing.active_children() == []
    await until(sql, f"select ({connections}) <= {before}")


async def test_no_claim_is_left_when_all_jobs_are_settled(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    endings = [None, ValueError("no"), Retry("later", after=60), Snooze(60), Fail("no"), Cancel("no")]

    @app.job("test.mixed", retry=ONE_ATTEMPT)
    async def mixed(ctx: Context, n: int) -> None:
        if n % 2:
            async with ctx.transaction():
                pass
        error = endings[n % len(endings)]
        if error is not None:
            raise error

    other = Duly(app.settings)

    @other.job("test.unknown")
    async def unknown() -> None: ...

    await unknown.enqueue()
    await other.close()
    await app.enqueue_many([mixed.call(n) for n in range(60)])
    async with working(app) as worker:
        await worker.loop_events.wait("settled", 61)
    assert sql.execute("select count(*) from duly.claims").fetchone() == (0,)


async def test_an_isolated_job_still_running_after_the_drain_is_requeued(
    isolated: Duly, acting: uuid.UUID, tmp_path: Path, sql: psycopg.Connection
) -> None:
    handle = await isolated_jobs.uncancelable.enqueue(str(tmp_path / "started"))
    async with working(isolated, isolated=1, drain=seconds(0)):
        while not (tmp_path / "started").exists():
            await asyncio.to_thread(lambda: None)
    job = await handle.status()
    assert (job.status, job.attempt) == (Status.QUEUED, 0)
    assert multiprocessing.active_children() == []
    assert sql.execute("select count(*) from duly.claims").fetchone() == (0,)


async def test_a_stuck_thread_does_not_hold_up_the_drain(app: Duly, acting: uuid.UUID) -> None:
    inside, release = threading.Event(), threading.Event()

    @app.job("test.stuck")
    def stuck() -> None:
        inside.set()
        release.wait()

    handle = await stuck.enqueue()
    try:
        async with working(app, drain=seconds(0)):
            await asyncio.to_thread(inside.wait)
        job = await handle.status()
    finally:
        release.set()
    assert (job.status, job.attempt) == (Status.QUEUED, 0)


async def test_a_worker_that_delays_its_claim_notices_a_stop_request(
    app: Duly, acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although it clears its wake-up event after the delay, and would poll again in ten minutes."""
    monkeypatch.setattr(worker_module, "_BUSY_CLAIM_DELAY", 0.3)
    inside, go = asyncio.Event(), asyncio.Event()

    @app.job("test.held")
    async def held() -> None:
        inside.set()
        await go.wait()

    handle = await held.enqueue()
    async with asyncio.timeout(WAIT_TIMEOUT):
        async with working(app, slots=1, poll=seconds(600)):
            await inside.wait()
            await handle.status()
            go.set()
            await handle.wait()
