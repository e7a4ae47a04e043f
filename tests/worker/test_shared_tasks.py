"""Jobs that end without suspending share an asyncio task, and nothing else: no variable, no cancellation."""

from __future__ import annotations

import asyncio
import time
import uuid
from contextvars import ContextVar
from typing import Any

import pytest

from duly import Context, Duly, Handle
from duly.jobs.request_context import current_context
from tests.worker.working import ONE_ATTEMPT, WAIT_TIMEOUT, seconds, working

JOBS = 12


async def run_together(app: Duly, *calls: Any) -> list[Handle[Any]]:
    """Enqueue the calls, claim them at once, and return their handles when all have ended."""
    handles = await app.enqueue_many(calls)
    async with working(app, slots=50) as worker:
        await worker.loop_events.wait("settled", len(calls))
    return handles


async def outcomes(handles: list[Handle[Any]]) -> list[tuple[str, int]]:
    statuses = [await handle.status() for handle in handles]
    return [(str(status.outcome), status.attempt) for status in statuses]


async def test_jobs_that_end_at_once_share_a_task(app: Duly, acting: uuid.UUID) -> None:
    tasks = []

    @app.job("quick.task")
    async def quick(n: int) -> None:
        tasks.append(asyncio.current_task())

    await run_together(app, *(quick.call(n) for n in range(JOBS)))
    assert len(tasks) == JOBS
    assert len(set(tasks)) == 1


async def test_jobs_that_suspend_run_at_the_same_time_in_tasks_of_their_own(
    app: Duly, acting: uuid.UUID
) -> None:
    tasks, barrier = [], asyncio.Barrier(JOBS)

    @app.job("slow.task")
    async def slow(n: int) -> None:
        await barrier.wait()
        tasks.append(asyncio.current_task())

    await run_together(app, *(slow.call(n) for n in range(JOBS)))
    assert len(set(tasks)) == JOBS


async def test_a_job_sees_the_variables_of_no_other_job(app: Duly, acting: uuid.UUID) -> None:
    variable: ContextVar[int | None] = ContextVar("variable", default=None)

    @app.job("variable.set")
    async def change(n: int) -> int | None:
        before = variable.get()
        if n % 2:
            variable.set(n)
        return before

    handles = await run_together(app, *(change.call(n) for n in range(JOBS)))
    assert [await handle.result() for handle in handles] == [None] * JOBS


async def test_every_job_has_its_own_request_context_before_and_after_it_suspends(
    app: Duly, acting: uuid.UUID
) -> None:
    turn = asyncio.Event()

    @app.job("identity.tell")
    async def tell(ctx: Context, n: int) -> list[str]:
        ids = [str(current_context().parent_id)]
        if n == JOBS - 1:
            turn.set()
        elif n % 3 == 0:
            await turn.wait()
        return [*ids, str(current_context().parent_id)]

    handles = await run_together(app, *(tell.call(n) for n in range(JOBS)))
    assert [await handle.result() for handle in handles] == [[str(handle.job_id)] * 2 for handle in handles]


async def test_a_job_that_cancels_its_own_task_cancels_no_other_job(app: Duly, acting: uuid.UUID) -> None:
    turn = asyncio.Event()

    @app.job("cancel.self", retry=ONE_ATTEMPT)
    async def cancel(n: int) -> None:
        task = asyncio.current_task()
        assert task
        if n == 0:
            task.cancel()
        elif n == JOBS - 1:
            turn.set()
        else:
            await turn.wait()

    handles = await run_together(app, *(cancel.call(n) for n in range(JOBS)))
    assert await outcomes(handles) == [("succeeded", 1)] * JOBS


async def test_a_time_out_ends_only_the_job_that_takes_too_long(app: Duly, acting: uuid.UUID) -> None:
    @app.job("time.out", retry=ONE_ATTEMPT, timeout=seconds(0.3))
    async def wait(n: int) -> None:
        if n == JOBS // 2:
            await asyncio.Event().wait()

    handles = await run_together(app, *(wait.call(n) for n in range(JOBS)))
    found = await outcomes(handles)
    assert found.pop(JOBS // 2) == ("dead", 1)
    assert found == [("succeeded", 1)] * (JOBS - 1)


async def test_a_cancel_request_ends_only_its_job(app: Duly, acting: uuid.UUID) -> None:
    running, turn = asyncio.Event(), asyncio.Event()

    @app.job("cancel.one", retry=ONE_ATTEMPT)
    async def wait(n: int) -> None:
        if n == JOBS - 1:
            running.set()
        elif n % 2:
            await turn.wait()

    handles = await app.enqueue_many([wait.call(n) for n in range(JOBS)])
    async with working(app, slots=50, cancel_grace=seconds(0)) as worker:
        await running.wait()
        await handles[1].cancel("enough")
        assert (await handles[1].wait(WAIT_TIMEOUT)).status == "canceled"
        turn.set()
        await worker.loop_events.wait("settled", JOBS)
    assert (await outcomes(handles)).count(("succeeded", 1)) == JOBS - 1


@pytest.mark.parametrize(("burned", "turns"), [(0.0, [0, 0, 0]), (0.06, [0, 1, 2])])
async def test_other_callbacks_run_between_jobs_that_take_long_without_suspending(
    app: Duly, acting: uuid.UUID, burned: float, turns: list[int]
) -> None:
    seen: list[int] = []

    @app.job("burn.cpu")
    async def burn(n: int) -> int:
        asyncio.get_running_loop().call_soon(seen.append, n)
        turn, until = len(seen), time.monotonic() + burned
        while time.monotonic() < until:
            pass
        return turn

    handles = await run_together(app, *(burn.call(n) for n in range(3)))
    assert [await handle.result() for handle in handles] == turns
