"""Cancellation: at once while queued, by request while running, by force after the grace period."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duly import Actor, Cancel, Context, Duly, Handle, Retry, Snooze, Status, SyncContext, context, errors
from tests.journeys.consistency import check_consistency
from tests.worker import isolated_jobs
from tests.worker.working import (
    RETRY_AT_ONCE,
    WAIT_TIMEOUT,
    event_types,
    lose_all_workers,
    run_until_ended,
    seconds,
    settle_attempts,
    silent_worker,
    working,
    yield_to_loop,
)


class Gate:
    """Events to hold a handler: it sets `inside`, and waits for `go`."""

    def __init__(self) -> None:
        self.inside = asyncio.Event()
        self.go = asyncio.Event()


async def test_a_queued_job_is_canceled_at_once_and_never_starts(app: Duly, acting: uuid.UUID) -> None:
    @app.job("test.never")
    async def never() -> None: ...

    handle = await never.enqueue()
    assert await handle.cancel("changed my mind") is Status.CANCELED
    async with working(app) as worker:
        await worker.loop_events.wait("idle", 2)
    job = await handle.status()
    assert (job.canceled_by, job.cancel_reason, job.attempt) == ("user", "changed my mind", 0)
    assert await event_types(handle) == ["queued", "canceled"]


@pytest.mark.parametrize(("actor", "by"), [(Actor.user("u1"), "user"), (Actor.system("nightly"), "system")])
async def test_a_running_job_stops_between_two_steps_after_a_cancel_request(
    app: Duly, acting: uuid.UUID, actor: Actor, by: str
) -> None:
    gate = Gate()

    @app.job("test.polite")
    async def polite(ctx: Context) -> None:
        await ctx.partial({"first": "half"})
        gate.inside.set()
        await gate.go.wait()
        assert ctx.cancel_requested
        ctx.check_canceled()
        raise AssertionError("it goes on")

    handle = await polite.enqueue()
    async with working(app) as worker:
        await gate.inside.wait()
        with context(actor=actor):
            assert await handle.cancel("enough") is Status.PARTIAL
            assert await handle.cancel("once more") is Status.PARTIAL, "a second request changes nothing"
        await worker.loop_events.wait("cancel requested")
        gate.go.set()
        job = await handle.wait(WAIT_TIMEOUT)
    assert (job.status, job.canceled_by, job.cancel_reason) == (Status.CANCELED, by, "enough")
    assert await event_types(handle) == ["queued", "started", "partial", "cancel_requested", "canceled"]
    async with app.tenant_session(acting) as conn:
        rows = await (await conn.execute("select result_payload from duly.job_results")).fetchall()
    assert rows == [({"first": "half"},)], "the last partial result stays readable"


async def test_a_handler_that_ignores_a_cancel_request_is_stopped_after_the_grace(
    app: Duly, acting: uuid.UUID
) -> None:
    inside = asyncio.Event()

    @app.job("test.uncancelable")
    async def uncancelable() -> None:
        inside.set()
        await asyncio.Event().wait()

    handle = await uncancelable.enqueue()
    async with working(app, cancel_grace=seconds(0.05)):
        await inside.wait()
        await handle.cancel("enough")
        job = await handle.wait(WAIT_TIMEOUT)
    assert (job.status, job.canceled_by, job.cancel_reason) == (Status.CANCELED, "user", "enough")


async def test_a_thread_that_ignores_a_cancel_is_abandoned_and_its_later_writes_are_refused(
    app: Duly, acting: uuid.UUID
) -> None:
    inside, release, refused = threading.Event(), threading.Event(), threading.Event()

    @app.job("test.uncancelable")
    def uncancelable(ctx: SyncContext) -> None:
        inside.set()
        release.wait()
        try:
            ctx.partial({"too": "late"})
        except errors.LeaseLost:
            refused.set()

    handle = await uncancelable.enqueue()
    async with working(app, cancel_grace=seconds(0.05)):
        await asyncio.to_thread(inside.wait)
        await handle.cancel("enough")
        job = await handle.wait(WAIT_TIMEOUT)
        release.set()
        assert await asyncio.to_thread(refused.wait, WAIT_TIMEOUT)
    assert (job.status, job.partial_count) == (Status.CANCELED, 0)


async def test_an_isolated_process_is_killed_after_the_grace(
    isolated: Duly, acting: uuid.UUID, tmp_path: Path
) -> None:
    async with working(isolated, cancel_grace=seconds(0.05)) as worker:
        handle = await isolated_jobs.uncancelable.enqueue(str(tmp_path / "started"))
        await worker.loop_events.wait("started")
        await handle.cancel("enough")
        job = await handle.wait(WAIT_TIMEOUT)
    assert (job.status, job.cancel_reason) == (Status.CANCELED, "enough")


async def test_a_handler_may_cancel_its_own_job(app: Duly, acting: uuid.UUID) -> None:
    @app.job("test.own")
    async def own() -> Cancel:
        return Cancel("there is nothing to do")

    job = await run_until_ended(app, await own.enqueue())
    assert (job.canceled_by, job.cancel_reason) == ("worker", "there is nothing to do")


async def test_a_job_that_finishes_before_it_receives_the_cancel_is_completed(
    app: Duly, acting: uuid.UUID
) -> None:
    gate = Gate()

    @app.job("test.quick")
    async def quick() -> str:
        gate.inside.set()
        await gate.go.wait()
        return "done"

    handle = await quick.enqueue()
    async with working(app):
        await gate.inside.wait()
        await handle.cancel("too late")
        gate.go.set()
        job = await handle.wait(WAIT_TIMEOUT)
    assert (job.status, await handle.result()) == (Status.COMPLETED, "done")


async def test_a_thousand_cancels_race_with_completions_and_each_job_ends_once(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("test.race")
    async def race(ctx: Context, n: int) -> int:
        if n % 3 == 0:
            await ctx.partial({"n": n})
        if n % 2 == 0:
            ctx.check_canceled()
        return n

    handles = await app.enqueue_many([race.call(n) for n in range(1000)])
    answers: Counter[str] = Counter()

    async def cancel(batch: list[Handle[Any]]) -> None:
        for handle in batch:
            with suppress(errors.AlreadyFinished):
                answers[await handle.cancel("a race")] += 1

    async with working(app, slots=50, cancel_grace=seconds(0.1)):
        # Two tasks cancel in the order of the worker, two in the reverse order.
        await asyncio.gather(*(cancel(handles[n::4][:: 1 if n < 2 else -1]) for n in range(4)))
        ended = [await handle.wait(WAIT_TIMEOUT) for handle in handles]
    statuses = Counter(job.status for job in ended)
    assert statuses[Status.COMPLETED] + statuses[Status.CANCELED] == 1000
    assert min(statuses[Status.COMPLETED], statuses[Status.CANCELED]) > 10, f"it was a race: {statuses}"
    check_consistency(sql)


async def test_a_sync_handler_receives_the_cancel(app: Duly, acting: uuid.UUID) -> None:
    inside, go = threading.Event(), threading.Event()

    @app.job("test.polite")
    def polite(ctx: SyncContext) -> None:
        inside.set()
        go.wait()
        assert ctx.cancel_requested
        for chunk in ctx.chunks(["a"]):
            raise AssertionError(f"{chunk} is handed out")

    handle = await polite.enqueue()
    async with working(app) as worker:
        await asyncio.to_thread(inside.wait)
        assert await handle.cancel("enough") is Status.RUNNING
        await worker.loop_events.wait("cancel requested")
        go.set()
        job = await handle.wait(WAIT_TIMEOUT)
    assert (job.status, job.canceled_by, job.cancel_reason) == (Status.CANCELED, "user", "enough")


async def test_an_isolated_handler_receives_the_cancel(
    isolated: Duly, acting: uuid.UUID, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    async with working(isolated, isolated=1, cancel_grace=seconds(WAIT_TIMEOUT)):
        handle = await isolated_jobs.cancelable.enqueue(str(started))
        while not started.exists():
            await asyncio.to_thread(lambda: None)
        await handle.cancel("enough")
        job = await handle.wait(WAIT_TIMEOUT)
    assert (job.status, job.canceled_by, job.cancel_reason) == (Status.CANCELED, "user", "enough")
    assert await event_types(handle) == ["queued", "started", "cancel_requested", "canceled"]


async def test_a_job_that_waits_for_its_retry_is_canceled_at_once(app: Duly, acting: uuid.UUID) -> None:
    @app.job("test.later")
    async def later() -> None:
        raise Retry("busy", after=3600)

    handle = await later.enqueue()
    await settle_attempts(app)
    assert await handle.cancel("no longer") is Status.CANCELED
    assert await handle.cancel("no longer") is Status.CANCELED
    assert await event_types(handle) == ["queued", "started", "retried", "canceled"]


@pytest.mark.parametrize(
    "ending", [ValueError("broken"), Retry("busy"), Snooze(60)], ids=["error", "retry", "snooze"]
)
async def test_a_cancel_that_the_worker_has_not_received_wins_over_a_retry(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, ending: Exception
) -> None:
    gate = Gate()

    @app.job("test.fails", retry=RETRY_AT_ONCE)
    async def fails() -> None:
        gate.inside.set()
        await gate.go.wait()
        raise ending

    handle = await fails.enqueue()
    async with silent_worker(app, sql):
        await gate.inside.wait()
        await handle.cancel("enough")
        gate.go.set()
        job = await handle.wait(WAIT_TIMEOUT)
    assert (job.status, job.canceled_by, job.attempt >= 0) == (Status.CANCELED, "user", True)
    assert await event_types(handle) == ["queued", "started", "cancel_requested", "canceled"]


async def test_a_handler_that_is_stopped_by_force_may_clean_up(app: Duly, acting: uuid.UUID) -> None:
    inside, cleaned = asyncio.Event(), []

    @app.job("test.tidy")
    async def tidy() -> None:
        inside.set()
        try:
            await asyncio.Event().wait()
        finally:
            await yield_to_loop()
            cleaned.append(True)

    handle = await tidy.enqueue()
    async with working(app, cancel_grace=seconds(0)) as worker:
        await inside.wait()
        await handle.cancel("enough")
        job = await handle.wait(WAIT_TIMEOUT)
    assert (job.status, cleaned, worker.loop_events.counts["abandoned"]) == (Status.CANCELED, [True], 0)


async def test_an_ended_job_cannot_be_canceled(app: Duly, acting: uuid.UUID) -> None:
    @app.job("test.quick")
    async def quick() -> str:
        return "done"

    handle = await quick.enqueue()
    await run_until_ended(app, handle)
    with pytest.raises(errors.AlreadyFinished):
        await handle.cancel("too late")
    assert await event_types(handle) == ["queued", "started", "completed"]


async def test_a_canceled_job_whose_worker_died_does_not_run_again(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    inside = asyncio.Event()

    @app.job("test.long")
    async def long() -> None:
        inside.set()
        await asyncio.Event().wait()

    handle = await long.enqueue()
    async with silent_worker(app, sql, drain=seconds(0)):
        await inside.wait()
        await handle.cancel("enough")
        await lose_all_workers(app, sql)
    job = await handle.status()
    assert (job.status, job.canceled_by, job.cancel_reason) == (Status.CANCELED, "user", "enough")
    assert await event_types(handle) == ["queued", "started", "cancel_requested", "lease_lost", "canceled"]
