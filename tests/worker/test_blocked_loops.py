"""Handlers that block the event loop are interrupted at their timeout, or the worker reports itself stuck."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path
from time import sleep
from types import SimpleNamespace
from typing import cast

import psycopg
import pytest

from duly import Actor, Context, Duly, context
from duly.testing import FreshDatabase
from duly.worker.execute import Executor
from duly.worker.isolation.watchdog import Watchdog
from tests.worker.working import (
    ONE_ATTEMPT,
    WAIT_TIMEOUT,
    seconds,
    surviving_worker,
    worker_row,
    working,
    yield_to_loop,
)


@pytest.mark.parametrize("way", ["sleeping", "computing", "catching once"])
async def test_a_handler_that_blocks_the_loop_is_interrupted(app: Duly, acting: uuid.UUID, way: str) -> None:
    caught = []

    @app.job("block.loop", timeout=seconds(0.3), retry=ONE_ATTEMPT)
    async def block() -> None:
        if way == "sleeping":
            sleep(60)
        while way == "computing":
            pass
        while not caught:
            try:
                sleep(60)
            except Exception:
                raise AssertionError("the interrupt must not be an Exception") from None
            except BaseException as error:
                caught.append(error)

    async with surviving_worker(app):
        job = await (await block.enqueue()).wait()
    assert (job.outcome, job.error_code) == ("dead", "run.timeout")


async def test_a_task_of_a_handler_that_blocks_the_loop_is_interrupted(app: Duly, acting: uuid.UUID) -> None:
    async def block() -> None:
        sleep(60)

    @app.job("block.loop", timeout=seconds(0.3), retry=ONE_ATTEMPT)
    async def block_in_task() -> None:
        await asyncio.gather(block(), yield_to_loop())

    async with surviving_worker(app):
        job = await (await block_in_task.enqueue()).wait()
    assert (job.outcome, job.error_code) == ("dead", "run.timeout")


async def test_a_blocked_loop_that_was_freed_lets_the_handler_clean_up(app: Duly, acting: uuid.UUID) -> None:
    cleaned = asyncio.Event()

    @app.job("block.loop", timeout=seconds(0.3), retry=ONE_ATTEMPT)
    async def block(ctx: Context) -> None:
        try:
            sleep(60)
        finally:
            # Longer than the watchdog needs to notice that the handler still runs.
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), 0.5)
            cleaned.set()

    async with surviving_worker(app) as worker:
        job = await (await block.enqueue()).wait()
        await cleaned.wait()
    assert job.error_code == "run.timeout"
    assert worker.loop_events.counts["abandoned"] == 0


async def test_a_handler_that_blocks_the_loop_within_its_timeout_completes(
    app: Duly, acting: uuid.UUID
) -> None:
    @app.job("block.loop", retry=ONE_ATTEMPT)
    async def block() -> str:
        sleep(1.7)
        return "done"

    async with surviving_worker(app, lease=seconds(1.2), heartbeat=seconds(0.2)):
        assert await (await block.enqueue()).result() == "done"


async def test_a_worker_whose_loop_was_blocked_beyond_its_lease_is_lost_and_registers_again(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    stuck: list[float] = []
    silences: list[object] = []

    @app.job("test.block", timeout=seconds(0.1), retry=ONE_ATTEMPT)
    async def block() -> None:
        while not silences:
            with suppress(BaseException):
                # Ignore the interrupt until the worker has sent no heartbeat for a while.
                while not stuck or time.monotonic() < stuck[0] + 1:
                    sleep(0.05)
                silences.append(worker_row(sql, "now() - heartbeat_at"))
        sql.execute("update duly.workers set lost_at = now()")

    @app.job("test.quick")
    async def quick(n: int) -> int:
        return n

    options = {
        "lease": seconds(1.5),
        "heartbeat": seconds(0.1),
        "when_stuck": lambda: stuck.append(time.monotonic()),
    }
    async with working(app, **options) as worker:
        handle = await block.enqueue()
        await worker.loop_events.wait("declared lost")
        assert await (await quick.enqueue(1)).result(WAIT_TIMEOUT) == 1
    assert len(stuck) == 1
    assert silences[0] > seconds(0.5), "a stuck worker sends no heartbeats"
    assert worker.loop_events.counts["lost"] == 1 or (await handle.status()).outcome == "dead"


async def test_a_handler_that_blocks_the_loop_is_interrupted_whichever_worker_runs_it(
    app: Duly, acting: uuid.UUID
) -> None:
    @app.job("test.block", timeout=seconds(0.1), retry=ONE_ATTEMPT)
    async def block(n: int) -> None:
        sleep(60)

    first = app.worker(heartbeat=seconds(0.1))
    await first.start()
    async with working(app, heartbeat=seconds(0.1)):
        assert (await (await block.enqueue(1)).wait(WAIT_TIMEOUT)).error_code == "run.timeout"
        await first.stop()
        assert (await (await block.enqueue(2)).wait(WAIT_TIMEOUT)).error_code == "run.timeout"


def test_a_worker_outside_of_the_main_thread_calls_when_stuck_for_a_blocked_loop(
    fresh: FreshDatabase, tmp_path: Path
) -> None:
    stuck = threading.Event()
    app = Duly(
        database_url=fresh.url,
        database_direct_url=fresh.direct_url if fresh.url != fresh.direct_url else None,
        blobs_url=str(tmp_path),
        maintenance=False,
    )

    @app.job("test.block", timeout=seconds(0.1), retry=ONE_ATTEMPT)
    async def block() -> None:
        stuck.wait()

    async def main() -> str:
        org = uuid.uuid4()
        await app.create_org(org, "Acme")
        with context(org_id=org, actor=Actor.user("u1")):
            handle = await block.enqueue()
        async with working(app, lease=seconds(1.2), heartbeat=seconds(0.1), when_stuck=stuck.set):
            job = await handle.wait(WAIT_TIMEOUT)
        await app.close()
        return job.outcome

    outcomes: list[str] = []
    thread = threading.Thread(target=lambda: outcomes.append(asyncio.run(main())), daemon=True)
    thread.start()
    thread.join(WAIT_TIMEOUT)
    assert stuck.is_set()
    assert outcomes, "outside of the main thread no signal interrupts the handler, which ended by itself"


def test_a_process_resumed_from_a_stop_is_not_stuck_before_its_loop_could_run() -> None:
    """As after SIGCONT: two checks run at once, and the loop has not run for longer than the lease."""
    stuck_calls = []
    still = SimpleNamespace(ticked_at=time.monotonic() - 60, abandoned={"abandoned": "before"}, runs={})
    dog = Watchdog(cast(Executor, still), 3.0, lambda: stuck_calls.append(True))
    try:
        dog._looked_at = time.monotonic() - 60
        assert [dog.check(), dog.check()] == [False, False]
    finally:
        dog.close()
    assert stuck_calls == []
