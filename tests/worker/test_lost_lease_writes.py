"""A handler that lost its lease gets LeaseLost on its next call, and writes nothing."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

from duly import Context, Duly, Handle, SyncContext, errors
from tests.worker.working import (
    RETRY_AT_ONCE,
    dump_job_tables,
    lose_all_workers,
    run_until_ended,
    silent_worker,
)

Write = Callable[[Context], Awaitable[Any]]


async def _chunk(ctx: Context) -> None:
    async for chunk in ctx.chunks(["a"]):
        async with chunk:
            chunk.result = 1


WRITES: dict[str, Write] = {
    "partial": lambda ctx: ctx.partial("late", percent=90),
    "chunk": _chunk,
    "checkpoint": lambda ctx: ctx.checkpoint("late"),
    "artifact": lambda ctx: ctx.artifact("late", b"late"),
}


@pytest.mark.parametrize("write", WRITES)
async def test_an_async_handler_without_its_lease_can_write_nothing(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, write: str
) -> None:
    started, taken_over, lease_errors = asyncio.Event(), asyncio.Event(), []

    @app.job("read.pages", retry=RETRY_AT_ONCE)
    async def read(ctx: Context) -> str:
        if ctx.attempt > 1:
            return "by the second"
        started.set()
        await taken_over.wait()
        try:
            await WRITES[write](ctx)
        except errors.LeaseLost as error:
            lease_errors.append(error)
        for other in (ctx.check_canceled, ctx.session, ctx.transaction, lambda: ctx.progress(95)):
            with pytest.raises(errors.LeaseLost):
                other()
        return "by the first"

    handle = await read.enqueue()
    async with silent_worker(app, sql) as worker:
        await started.wait()
        await lose_all_workers(app, sql)
        before = dump_job_tables(sql)
        taken_over.set()
        await worker.loop_events.wait("lost")
        assert dump_job_tables(sql) == before
    assert len(lease_errors) == 1
    await run_until_ended(app, handle)
    assert await handle.result() == "by the second"
    [line] = (await app.jobs.logs(acting, handle.job_id)).lines
    assert (line.attempt, line.level, line.fields) == (1, "warning", {"status": "refused", "outcome": "done"})
    assert "came too late" in line.message


async def test_a_sync_handler_without_its_lease_can_write_nothing(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    started, taken_over, refused = asyncio.Event(), asyncio.Event(), []
    loop = asyncio.get_running_loop()

    @app.job("read.pages", retry=RETRY_AT_ONCE)
    def read(ctx: SyncContext) -> str:
        if ctx.attempt > 1:
            return "by the second"
        loop.call_soon_threadsafe(started.set)
        asyncio.run_coroutine_threadsafe(taken_over.wait(), loop).result()
        calls: list[Callable[[], Any]] = [
            lambda: ctx.partial("late"),
            lambda: ctx.checkpoint("late"),
            lambda: ctx.artifact("late", b""),
            lambda: ctx.progress(99),
            lambda: next(iter(ctx.chunks(["a"]))),
            lambda: ctx.session().__enter__(),
            lambda: ctx.transaction().__enter__(),
            lambda: ctx.enqueue(read.call()),
            ctx.check_canceled,
        ]
        for call in calls:
            with pytest.raises(errors.LeaseLost):
                call()
            refused.append(call)
        raise errors.LeaseLost("as it was")

    handle: Handle[str] = await read.enqueue()
    async with silent_worker(app, sql) as worker:
        await started.wait()
        await lose_all_workers(app, sql)
        before = dump_job_tables(sql)
        taken_over.set()
        await worker.loop_events.wait("lost")
        assert dump_job_tables(sql) == before
    assert len(refused) == 9
    await run_until_ended(app, handle)
    assert await handle.result() == "by the second"
