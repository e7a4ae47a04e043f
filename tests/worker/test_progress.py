"""Progress never falls, a retry reads the last checkpoint, and counts add up."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest

from duly import Context, Duly, SyncContext
from tests.worker.working import (
    ONE_ATTEMPT,
    RETRY_AT_ONCE,
    TWO_ATTEMPTS,
    event_types,
    run_until_ended,
    settle_attempts,
    yield_to_loop,
)


async def test_progress_never_falls(app: Duly, acting: uuid.UUID, sql: psycopg.Connection) -> None:
    @app.job("step.take", retry=TWO_ATTEMPTS)
    async def take(ctx: Context) -> None:
        if ctx.attempt == 1:
            ctx.progress(60)
            await ctx.partial("x", percent=40)
        ctx.progress(30, "less than before")
        raise ValueError("no")

    handle = await take.enqueue()
    job = await run_until_ended(app, handle)
    assert (job.outcome, job.progress_percent, job.attempt) == ("dead", 60, 2)
    assert (await event_types(handle)).count("progressed") <= 1


@pytest.mark.parametrize("percent", [-1, 101, float("nan"), "50", None, True])
async def test_progress_is_a_number_from_0_to_100(app: Duly, acting: uuid.UUID, percent: Any) -> None:
    @app.job("step.take", retry=RETRY_AT_ONCE)
    async def take(ctx: Context) -> None:
        ctx.progress(percent)

    @app.job("step.take_sync", retry=RETRY_AT_ONCE)
    def sync_handler(ctx: SyncContext) -> None:
        ctx.progress(percent)

    handles = [await take.enqueue(), await sync_handler.enqueue()]
    await settle_attempts(app, 2)
    for handle in handles:
        job = await handle.status()
        assert (job.outcome, job.attempt, job.error_code) == ("failed", 1, "contract.invalid")


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_many_progress_updates_are_coalesced_and_the_last_is_written(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, kind: str
) -> None:
    @app.job("step.async", retry=ONE_ATTEMPT)
    async def async_handler(ctx: Context) -> None:
        for n in range(1, 1000):
            ctx.progress(n / 10, f"step {n}")
            await yield_to_loop()
        raise ValueError("so that the progress is not set to 100")

    @app.job("step.sync", retry=ONE_ATTEMPT)
    def sync_handler(ctx: SyncContext) -> None:
        for n in range(1, 1000):
            ctx.progress(n / 10, f"step {n}")
        raise ValueError("so that the progress is not set to 100")

    handle = await (async_handler if kind == "async" else sync_handler).enqueue()
    job = await run_until_ended(app, handle)
    assert job.progress_percent == pytest.approx(99.9)
    percents = [
        event.payload_json["progress_percent"]
        async for event in handle.events()
        if event.event_type == "job.progressed"
    ]
    assert percents == sorted(set(percents)), "an event for each change, and none without"
    assert percents[-1] == pytest.approx(99.9)
    # At most four writes per second, however long the handler takes.
    assert job.started_at
    assert job.finished_at
    assert len(percents) <= 3 + 4 * (job.finished_at - job.started_at).total_seconds()


BAD_COUNTS: list[dict[str, Any]] = [{"apples": 1}, {"pages": "1"}, {"pages": float("nan")}, {"pages": True}]


@pytest.mark.parametrize("counts", BAD_COUNTS, ids=str)
async def test_unknown_or_invalid_counts_are_refused(
    app: Duly, acting: uuid.UUID, counts: dict[str, Any]
) -> None:
    @app.job("count.async", retry=RETRY_AT_ONCE)
    async def async_handler(ctx: Context) -> None:
        ctx.count(**counts)

    job = await run_until_ended(app, await async_handler.enqueue())
    assert (job.outcome, job.attempt, job.error_code) == ("failed", 1, "contract.invalid")
    assert (job.error_message or "").startswith("summary_counts")


async def test_counts_add_up(app: Duly, acting: uuid.UUID) -> None:
    @app.job("count.sync")
    def sync_handler(ctx: SyncContext) -> None:
        for n in range(4):
            ctx.count(processed=1, bytes=n / 2)

    job = await run_until_ended(app, await sync_handler.enqueue())
    assert job.summary_counts == {"processed": 4, "bytes": 3}


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_a_retry_reads_the_last_checkpoint(app: Duly, acting: uuid.UUID, kind: str) -> None:
    checkpoints: list[Any] = []

    @app.job("copy.async", retry=RETRY_AT_ONCE)
    async def async_handler(ctx: Context) -> None:
        checkpoints.append(ctx.checkpointed)
        for at in (0, {"row": ctx.attempt}):
            await ctx.checkpoint(at)
        checkpoints.append(ctx.checkpointed)
        if ctx.attempt < 3:
            raise ValueError("no")

    @app.job("copy.sync", retry=RETRY_AT_ONCE)
    def sync_handler(ctx: SyncContext) -> None:
        checkpoints.append(ctx.checkpointed)
        for at in (0, {"row": ctx.attempt}):
            ctx.checkpoint(at)
        checkpoints.append(ctx.checkpointed)
        if ctx.attempt < 3:
            raise ValueError("no")

    await run_until_ended(app, await (async_handler if kind == "async" else sync_handler).enqueue())
    assert checkpoints == [None, {"row": 1}, {"row": 1}, {"row": 2}, {"row": 2}, {"row": 3}]


@pytest.mark.parametrize(
    "value", [None, "x" * 100_000, object(), float("nan"), "a\0b"], ids=lambda v: str(v)[:9]
)
async def test_an_invalid_or_too_large_checkpoint_is_refused(
    app: Duly, acting: uuid.UUID, value: Any
) -> None:
    @app.job("copy.async", retry=RETRY_AT_ONCE)
    async def async_handler(ctx: Context) -> None:
        await ctx.checkpoint(value)

    job = await run_until_ended(app, await async_handler.enqueue())
    assert (job.outcome, job.attempt, job.error_code) == ("failed", 1, "contract.invalid")
