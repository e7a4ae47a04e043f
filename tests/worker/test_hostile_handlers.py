"""Handlers that raise or return hostile values: the job gets an outcome, and the worker continues."""

from __future__ import annotations

import math
import uuid
from typing import Any

import psycopg
import pytest

from duly import Context, Duly, Fail, Retry, SyncContext
from tests.worker import isolated_jobs
from tests.worker.working import (
    ONE_ATTEMPT,
    RETRY_AT_ONCE,
    TWO_ATTEMPTS,
    run_until_ended,
    surviving_worker,
)

# Raised errors


@pytest.mark.parametrize("error", isolated_jobs.BASE_EXCEPTIONS)
async def test_any_base_exception_of_a_handler_becomes_an_outcome(
    app: Duly, acting: uuid.UUID, error: str
) -> None:
    @app.job("raise.async", retry=TWO_ATTEMPTS)
    async def async_handler() -> None:
        raise isolated_jobs.BASE_EXCEPTIONS[error]("nasty")

    @app.job("raise.sync", retry=TWO_ATTEMPTS)
    def sync_handler() -> None:
        raise isolated_jobs.BASE_EXCEPTIONS[error]("nasty")

    async with surviving_worker(app):
        jobs = [await (await kind.enqueue()).wait() for kind in (async_handler, sync_handler)]
    for job in jobs:
        assert (job.outcome, job.attempt) == ("dead", 2)
        assert job.error_message == ("the handler cancelled itself" if error == "CancelledError" else "nasty")


async def test_stop_iteration_becomes_an_outcome(app: Duly, acting: uuid.UUID) -> None:
    @app.job("raise.sync", retry=ONE_ATTEMPT)
    def sync_handler() -> None:
        next(iter([]))

    @app.job("raise.async", retry=ONE_ATTEMPT)
    async def async_handler() -> None:
        next(iter([]))

    async with surviving_worker(app):
        jobs = [await (await kind.enqueue()).wait() for kind in (async_handler, sync_handler)]
    assert [(job.outcome, job.error_code) for job in jobs] == [("dead", "runtime_error")] * 2


class UnreadableMessage(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class ExitingMessage(Exception):
    def __str__(self) -> str:
        raise SystemExit(1)


ODD_ERRORS: dict[str, tuple[BaseException, str]] = {
    "NUL": (ValueError("a\0b"), "a\N{REPLACEMENT CHARACTER}b"),
    "a lone surrogate": (ValueError("a\ud800b"), "a\N{REPLACEMENT CHARACTER}b"),
    "a secret": (ValueError("postgresql://duly:hunter2@db/x"), "postgresql://[redacted]@db/x"),
    "10 MB": (ValueError("word " * 2_000_000), "word " * 399 + "word…"),
    "unreadable": (UnreadableMessage(), "its message cannot be read: ValueError"),
    "retried": (Retry("a\0b", code="odd\0code"), "a\N{REPLACEMENT CHARACTER}b"),
    "failed": (Fail("a\ud800b", code="odd\0code"), "a\N{REPLACEMENT CHARACTER}b"),
}


@pytest.mark.parametrize("odd", ODD_ERRORS)
async def test_error_messages_are_sanitized_redacted_and_truncated(
    app: Duly, acting: uuid.UUID, odd: str
) -> None:
    error, stored = ODD_ERRORS[odd]

    @app.job("raise.async", retry=ONE_ATTEMPT)
    async def async_handler() -> None:
        raise error

    async with surviving_worker(app):
        job = await (await async_handler.enqueue()).wait()
    assert job.error_message == stored
    assert job.error_code != "result.unstorable"


async def test_an_error_whose_message_raises_system_exit_becomes_an_outcome(
    app: Duly, acting: uuid.UUID
) -> None:
    @app.job("raise.async", retry=ONE_ATTEMPT)
    async def async_handler() -> None:
        raise ExitingMessage

    async with surviving_worker(app):
        job = await (await async_handler.enqueue()).wait()
    assert job.outcome == "dead"


# Returned values


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


ODD_RESULTS: dict[str, Any] = {
    "not a number": math.nan,
    "infinite": {"deep": [math.inf]},
    "NUL": "a\0b",
    "NUL in a name": {"a\0b": 1},
    "a lone surrogate": "a\ud800b",
    "an object": object(),
    "a coroutine function": nested,
    "bytes": b"\xff",
    "too deep": nested(100_000),
    "a number of many digits": 10**5000,
}


@pytest.mark.parametrize("odd", ODD_RESULTS)
async def test_a_result_that_json_cannot_represent_fails_the_job(
    app: Duly, acting: uuid.UUID, odd: str
) -> None:
    @app.job("return.async", retry=RETRY_AT_ONCE)
    async def async_handler() -> Any:
        return ODD_RESULTS[odd]

    @app.job("return.sync", retry=RETRY_AT_ONCE)
    def sync_handler() -> Any:
        return ODD_RESULTS[odd]

    async with surviving_worker(app):
        jobs = [await (await kind.enqueue()).wait() for kind in (async_handler, sync_handler)]
    for job in jobs:
        assert (job.status, job.outcome, job.attempt) == ("failed", "failed", 1), job.error_message
        assert job.error_code == "contract.invalid"
        assert (job.error_message or "").startswith("result: ")


async def test_an_escaped_u0000_in_a_result_is_not_a_nul(app: Duly, acting: uuid.UUID) -> None:
    @app.job("return.async")
    async def async_handler() -> str:
        return r"C:\u0000"

    handle = await async_handler.enqueue()
    await run_until_ended(app, handle)
    assert await handle.result() == r"C:\u0000"


async def test_a_result_of_another_type_than_declared_fails_the_job(app: Duly, acting: uuid.UUID) -> None:
    @app.job("return.async", retry=RETRY_AT_ONCE)
    async def async_handler() -> dict[str, int]:
        return ["no"]  # type: ignore[return-value]

    job = await run_until_ended(app, await async_handler.enqueue())
    assert (job.outcome, job.attempt, job.error_code) == ("failed", 1, "contract.invalid")
    assert "not of the declared return type" in (job.error_message or "")


async def test_a_result_of_300_mb_fails_the_job(app: Duly, acting: uuid.UUID) -> None:
    @app.job("text.return", retry=RETRY_AT_ONCE)
    async def return_text() -> str:
        return "x" * 300_000_000

    async with surviving_worker(app):
        job = await (await return_text.enqueue()).wait()
    assert (job.outcome, job.attempt, job.error_code) == ("failed", 1, "contract.invalid")
    assert "300000002 bytes exceed the limit of 67108864" in (job.error_message or "")


async def test_counts_that_overflow_fail_their_own_job_only(app: Duly, acting: uuid.UUID) -> None:
    @app.job("count.async", retry=RETRY_AT_ONCE)
    async def count(ctx: Context, n: float) -> None:
        ctx.count(bytes=n)
        ctx.count(bytes=n)

    async with surviving_worker(app):
        handles = await app.enqueue_many([count.call(n) for n in (1.0, 1e308, 2.0)])
        jobs = [await handle.wait() for handle in handles]
    assert [job.outcome for job in jobs] == ["succeeded", "failed", "succeeded"]


async def test_progress_is_written_with_a_sanitized_note(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    notes: list[Any] = ["a\0b", "a\ud800b", object(), "x" * 1_000_000, "fine"]

    @app.job("note.async", retry=ONE_ATTEMPT)
    async def note(ctx: Context, n: int) -> None:
        ctx.progress(50, notes[n])
        raise ValueError("so that the last progress is stored")

    @app.job("note.sync", retry=ONE_ATTEMPT)
    def sync_handler(ctx: SyncContext, n: int) -> None:
        ctx.progress(50, notes[n])
        raise ValueError("so that the last progress is stored")

    async with surviving_worker(app):
        for kind in (note, sync_handler):
            handles = await app.enqueue_many([kind.call(n) for n in range(len(notes))])
            jobs = [await handle.wait() for handle in handles]
            assert {(job.progress_percent, job.error_code) for job in jobs} == {(50, "value_error")}
    stored = sql.execute(
        "select payload_json ->> 'note' from duly.job_events where event_type = 'job.progressed'"
    )
    assert all(len(text) <= 2000 for (text,) in stored)
