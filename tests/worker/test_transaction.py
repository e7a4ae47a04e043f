"""`ctx.transaction()`: its writes are committed exactly once if the job completes, else never."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duly import Cancel, Context, Duly, Fail, Retry, Snooze, SyncContext
from tests.worker import isolated_jobs
from tests.worker.effects import KINDS, WRITE, writer
from tests.worker.working import (
    ONE_ATTEMPT,
    RETRY_AT_ONCE,
    event_types,
    run_until_ended,
    working,
)

pytestmark = pytest.mark.usefixtures("effects")


@pytest.mark.parametrize("kind", KINDS)
async def test_effects_are_committed_with_the_completion(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, effects: Callable[[], Any], kind: str
) -> None:
    visible = []

    def observe(attempt: int) -> str:
        visible.append(effects())
        return "done"

    handle = await writer(app, kind, observe).enqueue()
    await run_until_ended(app, handle)
    assert await handle.result() == "done"
    assert visible == [[]], "not visible before the commit"
    assert effects() == [(handle.job_id, 1)]
    together = sql.execute(
        "select count(*) from effects f, duly.event_log e "
        "where e.event_type = 'job.completed' and e.commit_xid::xid = f.xmin"
    ).fetchone()
    assert together == (1,)
    assert await event_types(handle) == ["queued", "started", "completed"]


async def test_effects_of_a_process_are_committed_with_the_completion(
    isolated: Duly, acting: uuid.UUID, effects: Callable[[], Any], tmp_path: Path
) -> None:
    endings = ("return", "error", "exit", "snooze")
    calls = [
        kind.call(ending, str(tmp_path))
        for kind in (isolated_jobs.write, isolated_jobs.write_async)
        for ending in endings
    ]
    handles = await isolated.enqueue_many(calls)
    async with working(isolated, isolated=2):
        jobs = [await handle.wait() for handle in handles]
    assert {job.outcome for job in jobs} == {"succeeded"}
    assert [job.attempt for job in jobs] == [1, 2, 2, 1] * 2
    # A snooze gives the attempt back: the second run counts as the first attempt.
    assert sorted(effects()) == sorted((job.job_id, job.attempt) for job in jobs)


def _raise(error: Exception) -> Any:
    raise error


REFUSALS: dict[str, Callable[[], Any]] = {
    "an error": lambda: _raise(ValueError("no")),
    "a retry": lambda: Retry(after=0),
    "a snooze": lambda: Snooze(0),
    "a bad result": object,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("refusal", REFUSALS)
async def test_effects_of_an_attempt_that_does_not_complete_are_rolled_back(
    app: Duly, acting: uuid.UUID, effects: Callable[[], Any], refusal: str, kind: str
) -> None:
    tries = []

    def fail_first(attempt: int) -> Any:
        tries.append(effects())
        return REFUSALS[refusal]() if len(tries) == 1 else "done"

    handle = await writer(app, kind, fail_first).enqueue()
    job = await run_until_ended(app, handle)
    if refusal == "a bad result":
        assert (job.status, effects()) == ("failed", [])
    else:
        assert (job.status, tries, len(effects())) == ("completed", [[], []], 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", [Fail("no"), Cancel("no")], ids=["failed", "canceled"])
async def test_effects_of_a_failed_or_canceled_job_are_rolled_back(
    app: Duly, acting: uuid.UUID, effects: Callable[[], Any], end: Exception, kind: str
) -> None:
    handle = await writer(app, kind, lambda attempt: end).enqueue()
    job = await run_until_ended(app, handle)
    assert job.status in ("failed", "canceled")
    assert effects() == []


@pytest.mark.parametrize("kind", KINDS)
async def test_an_error_inside_the_block_rolls_it_back(
    app: Duly, acting: uuid.UUID, effects: Callable[[], Any], kind: str
) -> None:
    @app.job("write.async", retry=ONE_ATTEMPT)
    async def async_handler(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await conn.execute(WRITE, [ctx.job.job_id, 1])
            raise ValueError("no")

    @app.job("write.sync", retry=ONE_ATTEMPT)
    def sync_handler(ctx: SyncContext) -> None:
        with ctx.transaction() as conn:
            conn.execute(WRITE, [ctx.job.job_id, 1])
            raise ValueError("no")

    job = await run_until_ended(app, await (async_handler if kind == "async" else sync_handler).enqueue())
    assert (job.outcome, job.error_code, effects()) == ("dead", "value_error", [])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_swallowed_database_error_prevents_the_completion(
    app: Duly, acting: uuid.UUID, effects: Callable[[], Any], kind: str
) -> None:
    @app.job("write.async", retry=ONE_ATTEMPT)
    async def async_handler(ctx: Context) -> str:
        async with ctx.transaction() as conn:
            await conn.execute(WRITE, [ctx.job.job_id, 1])
            with suppress(psycopg.Error):
                await conn.execute("select 1 / 0")
        return "as if nothing had happened"

    @app.job("write.sync", retry=ONE_ATTEMPT)
    def sync_handler(ctx: SyncContext) -> str:
        with ctx.transaction() as conn:
            conn.execute(WRITE, [ctx.job.job_id, 1])
            with suppress(psycopg.Error):
                conn.execute("select 1 / 0")
        return "as if nothing had happened"

    job = await run_until_ended(app, await (async_handler if kind == "async" else sync_handler).enqueue())
    assert (job.outcome, effects()) == ("dead", [])
    assert job.error_code == "store.error"


@pytest.mark.parametrize("kind", KINDS)
async def test_an_error_in_a_savepoint_rolls_back_only_the_savepoint(
    app: Duly, acting: uuid.UUID, effects: Callable[[], Any], kind: str
) -> None:
    @app.job("write.async", retry=ONE_ATTEMPT)
    async def async_handler(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await conn.execute(WRITE, [ctx.job.job_id, 1])
            try:
                async with conn.transaction():
                    await conn.execute(WRITE, [ctx.job.job_id, 2])
                    await conn.execute("select 1 / 0")
            except psycopg.Error:
                pass

    @app.job("write.sync", retry=ONE_ATTEMPT)
    def sync_handler(ctx: SyncContext) -> None:
        with ctx.transaction() as conn:
            conn.execute(WRITE, [ctx.job.job_id, 1])
            try:
                with conn.transaction():
                    conn.execute(WRITE, [ctx.job.job_id, 2])
                    conn.execute("select 1 / 0")
            except psycopg.Error:
                pass

    handle = await (async_handler if kind == "async" else sync_handler).enqueue()
    assert (await run_until_ended(app, handle)).outcome == "succeeded"
    assert effects() == [(handle.job_id, 1)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by", ["commit", "rollback"])
async def test_a_handler_cannot_commit_or_roll_back_its_transaction(
    app: Duly, acting: uuid.UUID, effects: Callable[[], Any], kind: str, by: str
) -> None:
    @app.job("write.async", retry=ONE_ATTEMPT)
    async def async_handler(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await conn.execute(WRITE, [ctx.job.job_id, 1])
            await getattr(conn, by)()

    @app.job("write.sync", retry=ONE_ATTEMPT)
    def sync_handler(ctx: SyncContext) -> None:
        with ctx.transaction() as conn:
            conn.execute(WRITE, [ctx.job.job_id, 1])
            getattr(conn, by)()

    job = await run_until_ended(app, await (async_handler if kind == "async" else sync_handler).enqueue())
    assert (job.outcome, job.error_code, effects()) == ("dead", "store.error", [])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_job_whose_transaction_was_ended_by_sql_does_not_complete(
    app: Duly, acting: uuid.UUID, effects: Callable[[], Any], kind: str
) -> None:
    @app.job("write.async", retry=ONE_ATTEMPT)
    async def async_handler(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await conn.execute(WRITE, [ctx.job.job_id, 1])
            await conn.execute("rollback")

    @app.job("write.sync", retry=ONE_ATTEMPT)
    def sync_handler(ctx: SyncContext) -> None:
        with ctx.transaction() as conn:
            conn.execute(WRITE, [ctx.job.job_id, 1])
            conn.execute("rollback")

    job = await run_until_ended(app, await (async_handler if kind == "async" else sync_handler).enqueue())
    assert (job.outcome, job.error_code, effects()) == ("dead", "store.error", [])
    assert "ended before its job" in (job.error_message or "")


@pytest.mark.parametrize("kind", KINDS)
async def test_there_is_one_transaction_per_attempt(
    app: Duly, acting: uuid.UUID, effects: Callable[[], Any], kind: str
) -> None:
    @app.job("write.async", retry=RETRY_AT_ONCE)
    async def async_handler(ctx: Context) -> None:
        async with ctx.transaction() as conn:
            await conn.execute(WRITE, [ctx.job.job_id, 1])
        async with ctx.transaction() as conn:
            await conn.execute(WRITE, [ctx.job.job_id, 2])

    @app.job("write.sync", retry=RETRY_AT_ONCE)
    def sync_handler(ctx: SyncContext) -> None:
        with ctx.transaction() as conn:
            conn.execute(WRITE, [ctx.job.job_id, 1])
        with ctx.transaction() as conn:
            conn.execute(WRITE, [ctx.job.job_id, 2])

    job = await run_until_ended(app, await (async_handler if kind == "async" else sync_handler).enqueue())
    assert (job.outcome, job.attempt, job.error_code, effects()) == ("failed", 1, "contract.invalid", [])
