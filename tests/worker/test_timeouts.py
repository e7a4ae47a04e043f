"""Handlers that never end: timeouts, stuck threads and swallowed cancellations."""

from __future__ import annotations

import asyncio
import threading
import uuid

import psycopg
import pytest

from duly import Context, Duly
from tests.worker.working import (
    ONE_ATTEMPT,
    event_types,
    seconds,
    surviving_worker,
)


async def test_a_handler_that_never_ends_is_stopped_at_its_timeout(app: Duly, acting: uuid.UUID) -> None:
    release = threading.Event()

    @app.job("hang.async", timeout=seconds(0.3), retry=ONE_ATTEMPT)
    async def async_handler() -> None:
        await asyncio.Event().wait()

    @app.job("hang.sync", timeout=seconds(0.3), retry=ONE_ATTEMPT)
    def sync_handler() -> None:
        release.wait()

    try:
        async with surviving_worker(app):
            jobs = [await (await kind.enqueue()).wait() for kind in (async_handler, sync_handler)]
    finally:
        release.set()
    for job in jobs:
        assert (job.outcome, job.error_code, job.attempt) == ("dead", "run.timeout", 1)
        assert job.error_message == "not done after 0:00:00.300000"


async def test_a_stuck_thread_is_replaced_and_reported(
    app: Duly, acting: uuid.UUID, caplog: pytest.LogCaptureFixture
) -> None:
    release = threading.Event()
    together = threading.Barrier(2)

    @app.job("hang.sync", timeout=seconds(0.1), retry=ONE_ATTEMPT)
    def hang(n: int) -> None:
        release.wait()

    @app.job("meet.sync", timeout=seconds(20), retry=ONE_ATTEMPT)
    def meet(n: int) -> str:
        together.wait()
        return "met"

    try:
        async with surviving_worker(app, threads=2):
            for n in range(4):
                assert (await (await hang.enqueue(n)).wait()).error_code == "run.timeout"
            pair = await app.enqueue_many([meet.call(n) for n in range(2)])
            assert [await handle.result() for handle in pair] == ["met", "met"]
    finally:
        release.set()
    reported = [line.message for line in caplog.records if "did not stop" in line.message]
    assert len(reported) == 4


async def test_a_handler_that_swallows_its_cancellation_is_abandoned(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    release, over, refused = asyncio.Event(), asyncio.Event(), []

    @app.job("swallow.async", timeout=seconds(0.2), retry=ONE_ATTEMPT)
    async def swallow(ctx: Context) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        for late in (ctx.partial(1), ctx.checkpoint(1), ctx.artifact("a", b"")):
            try:
                await late
            except Exception as error:
                refused.append(type(error).__name__)
        over.set()

    async with surviving_worker(app, stop_grace=seconds(0.2)) as worker:
        handle = await swallow.enqueue()
        job = await handle.wait()
        assert worker.loop_events.counts["abandoned"] == 1
        history = await event_types(handle)
        release.set()
        await over.wait()
    assert (job.outcome, job.error_code) == ("dead", "run.timeout")
    assert refused == ["LeaseLost"] * 3
    assert await event_types(handle) == history


async def test_an_abandoned_handler_can_no_longer_write_in_its_transaction(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    sql.execute("create table effects (n int); grant insert on effects to public")
    release, over, refused = asyncio.Event(), asyncio.Event(), []

    @app.job("swallow.async", timeout=seconds(0.2), retry=ONE_ATTEMPT)
    async def swallow(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await conn.execute("insert into effects values (1)")
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            try:
                await conn.execute("insert into effects values (2)")
            except psycopg.Error as error:
                refused.append(error)
        over.set()

    async with surviving_worker(app, stop_grace=seconds(0.2)):
        job = await (await swallow.enqueue()).wait()
        release.set()
        await over.wait()
    assert job.outcome == "dead"
    assert refused, "the connection no longer belongs to the handler"
    assert sql.execute("select n from effects").fetchall() == []
