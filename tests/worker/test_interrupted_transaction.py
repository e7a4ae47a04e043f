"""`ctx.transaction()` when the lease, the connection or the time runs out: nothing is committed."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from duly import Context, Duly, SyncContext
from tests.worker.effects import KINDS, WRITE, writer
from tests.worker.working import (
    ONE_ATTEMPT,
    RETRY_AT_ONCE,
    event_types,
    lose_all_workers,
    run_until_ended,
    seconds,
    settle_attempts,
    silent_worker,
)

pytestmark = pytest.mark.usefixtures("effects")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("moment", ["in the block", "after the block"])
async def test_effects_are_rolled_back_when_the_lease_was_lost(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, effects: Callable[[], Any], moment: str, kind: str
) -> None:
    written, taken_over = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    @app.job("write.async", retry=RETRY_AT_ONCE)
    async def async_handler(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await conn.execute(WRITE, [ctx.job.job_id, ctx.attempt])
            if moment == "in the block" and ctx.attempt == 1:
                written.set()
                await taken_over.wait()
        if moment == "after the block" and ctx.attempt == 1:
            written.set()
            await taken_over.wait()

    def pause() -> None:
        loop.call_soon_threadsafe(written.set)
        asyncio.run_coroutine_threadsafe(taken_over.wait(), loop).result()

    @app.job("write.sync", retry=RETRY_AT_ONCE)
    def sync_handler(ctx: SyncContext) -> None:
        with ctx.transaction() as conn:
            conn.execute(WRITE, [ctx.job.job_id, ctx.attempt])
            if moment == "in the block" and ctx.attempt == 1:
                pause()
        if moment == "after the block" and ctx.attempt == 1:
            pause()

    handle = await (async_handler if kind == "async" else sync_handler).enqueue()
    async with silent_worker(app, sql) as worker:
        await written.wait()
        await lose_all_workers(app, sql)
        taken_over.set()
        await worker.loop_events.wait("lost")
    assert effects() == []
    job = await run_until_ended(app, handle)
    assert (job.outcome, job.attempt) == ("succeeded", 2)
    assert effects() == [(handle.job_id, 2)]
    assert await event_types(handle) == ["queued", "started", "lease_lost", "started", "completed"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("moment", ["in the block", "right before the commit"])
async def test_effects_are_rolled_back_when_the_connection_was_cut(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, effects: Callable[[], Any], moment: str, kind: str
) -> None:
    def cut(backend: Any, attempt: int) -> None:
        if attempt == 1:
            sql.execute("select pg_terminate_backend(%s, 5000)", backend)

    @app.job("write.async", retry=RETRY_AT_ONCE)
    async def async_handler(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await conn.execute(WRITE, [ctx.job.job_id, ctx.attempt])
            backend = await (await conn.execute("select pg_backend_pid()")).fetchone()
            if moment == "in the block":
                cut(backend, ctx.attempt)
                await conn.execute("select 1")
        cut(backend, ctx.attempt)

    @app.job("write.sync", retry=RETRY_AT_ONCE)
    def sync_handler(ctx: SyncContext) -> None:
        with ctx.transaction() as conn:
            conn.execute(WRITE, [ctx.job.job_id, ctx.attempt])
            backend = conn.execute("select pg_backend_pid()").fetchone()
            if moment == "in the block":
                cut(backend, ctx.attempt)
                conn.execute("select 1")
        cut(backend, ctx.attempt)

    handle = await (async_handler if kind == "async" else sync_handler).enqueue()
    job = await run_until_ended(app, handle)
    assert (job.outcome, job.attempt, effects()) == ("succeeded", 2, [(handle.job_id, 2)])
    assert await event_types(handle) == ["queued", "started", "retried", "started", "completed"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_timeout_rolls_back_the_transaction_and_frees_its_locks(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, effects: Callable[[], Any], kind: str
) -> None:
    release = threading.Event()

    @app.job("write.async", timeout=seconds(0.3), retry=ONE_ATTEMPT)
    async def async_handler(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await conn.execute(WRITE, [ctx.job.job_id, 1])
            await asyncio.Event().wait()

    @app.job("write.sync", timeout=seconds(0.3), retry=ONE_ATTEMPT)
    def sync_handler(ctx: SyncContext) -> None:
        with ctx.transaction() as conn:
            conn.execute(WRITE, [ctx.job.job_id, 1])
            release.wait()

    try:
        job = await run_until_ended(app, await (async_handler if kind == "async" else sync_handler).enqueue())
        sql.execute("set lock_timeout = '5s'; lock table effects in access exclusive mode")
    finally:
        release.set()
    assert (job.outcome, job.error_code, effects()) == ("dead", "run.timeout", [])


async def test_a_result_that_cannot_be_stored_rolls_back_the_transaction(
    app: Duly, acting: uuid.UUID, effects: Callable[[], Any]
) -> None:
    @app.job("write.async", retry=RETRY_AT_ONCE)
    async def async_handler(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await conn.execute(WRITE, [ctx.job.job_id, 1])
        ctx.count(bytes=1e308)
        ctx.count(bytes=1e308)

    job = await run_until_ended(app, await async_handler.enqueue())
    assert (job.outcome, effects()) == ("failed", [])


async def test_more_transactions_than_connections_all_complete(
    app: Duly, acting: uuid.UUID, effects: Callable[[], Any]
) -> None:
    write = writer(app, "async")
    handles = await app.enqueue_many([write.options(idempotency_key=str(n)).call() for n in range(60)])
    await settle_attempts(app, 60)
    assert sorted(effects()) == sorted((handle.job_id, 1) for handle in handles)
