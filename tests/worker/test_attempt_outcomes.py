"""Outcomes of attempts: transient errors are retried, others are not, and handlers may signal theirs."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from duly import (
    Cancel,
    Context,
    Duly,
    Fail,
    Retry,
    Snooze,
    errors,
)
from duly.core.outcome import HandlerSignal
from tests.worker.working import RETRY_AT_ONCE, TWO_ATTEMPTS, event_types, run_until_ended, settle_attempts


class CardExpired(Exception):
    code = "card.expired"


@pytest.mark.parametrize("declared", ["by the job type", "by the application"])
async def test_errors_declared_never_retry_are_not_retried(
    app: Duly, acting: uuid.UUID, declared: str
) -> None:
    never = (CardExpired,) if declared == "by the job type" else ()
    if not never:
        app.never_retry.add(CardExpired)

    @app.job("card.charge", retry=RETRY_AT_ONCE, never_retry=never)
    def charge() -> None:
        raise CardExpired("12/25")

    handle = await charge.enqueue()
    job = await run_until_ended(app, handle)
    assert (job.status, job.outcome, job.attempt, job.retryable) == ("failed", "failed", 1, False)
    assert (job.error_code, job.error_message) == ("card.expired", "12/25")
    assert await event_types(handle) == ["queued", "started", "failed"]


@pytest.mark.parametrize("error", [PermissionError("no"), errors.NotFound("gone"), errors.ContractError("x")])
async def test_permission_and_contract_errors_are_not_retried(
    app: Duly, acting: uuid.UUID, error: Exception
) -> None:
    @app.job("step.take", retry=RETRY_AT_ONCE)
    async def take() -> None:
        raise error

    job = await run_until_ended(app, await take.enqueue())
    assert (job.outcome, job.attempt) == ("failed", 1)


async def test_other_errors_are_retried_until_the_attempts_are_exhausted(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    attempts = []

    @app.job("step.take", retry=RETRY_AT_ONCE)
    async def take(ctx: Context) -> None:
        attempts.append(ctx.attempt)
        raise ValueError("not yet")

    handle = await take.enqueue()
    job = await run_until_ended(app, handle)
    assert attempts == [1, 2, 3, 4, 5]
    assert (job.status, job.outcome, job.attempt, job.error_count, job.retryable) == (
        "failed",
        "dead",
        5,
        5,
        True,
    )
    assert sql.execute("select attempts, error_code, error_class from duly.dead_letters").fetchall() == [
        (5, "value_error", "ValueError")
    ]
    assert await event_types(handle) == [
        "queued",
        *["started", "retried"] * 4,
        "started",
        "deadlettered",
        "failed",
    ]


class Unavailable(Exception):
    """An error with a response, as HTTP clients raise it."""

    def __init__(self, headers: dict[str, str]) -> None:
        super().__init__("503")
        self.response = SimpleNamespace(headers=headers)


class Unread(Exception):
    @property
    def response(self) -> Any:
        raise RuntimeError("the response has not been read")


def _http_error(kind: str) -> Exception:
    match kind:
        case "seconds":
            return Unavailable({"Retry-After": "120"})
        case "a date":
            return Unavailable({"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=130))})
        case _:
            wrapped = RuntimeError("the provider is busy")
            wrapped.__cause__ = Unavailable({"retry-after": "120"})
            return wrapped


@pytest.mark.parametrize("kind", ["seconds", "a date", "of the cause"])
async def test_a_retry_waits_at_least_as_long_as_retry_after(app: Duly, acting: uuid.UUID, kind: str) -> None:
    @app.job("call.out", retry=RETRY_AT_ONCE)
    async def call() -> None:
        raise _http_error(kind)

    handle = await call.enqueue()
    await settle_attempts(app)
    job = await handle.status()
    assert (job.status, job.attempt) == ("queued", 1)
    # The worker estimates the time from its last reading of the database's clock.
    assert job.run_at - job.updated_at >= timedelta(seconds=119)


@pytest.mark.parametrize(
    "error",
    [
        Unavailable({"retry-after": "soon"}),
        Unavailable({"retry-after": "²"}),
        Unavailable(None),
        Unread("503"),
    ],
)
async def test_an_invalid_retry_after_is_ignored(app: Duly, acting: uuid.UUID, error: Exception) -> None:
    @app.job("call.out", retry=TWO_ATTEMPTS)
    async def call() -> None:
        raise error

    job = await run_until_ended(app, await call.enqueue())
    assert (job.outcome, job.attempt, job.error_message) == ("dead", 2, "503")
    assert job.error_code == type(error).__name__.lower()


SIGNALS: dict[str, tuple[HandlerSignal, dict[str, Any]]] = {
    "retry": (
        Retry("busy", after=100, code="provider.busy"),
        {"status": "queued", "attempt": 1, "error_code": "provider.busy", "error_message": "busy"},
    ),
    "snooze": (Snooze(timedelta(seconds=100)), {"status": "queued", "attempt": 0, "error_code": None}),
    "cancel": (
        Cancel("nothing to do"),
        {"status": "canceled", "attempt": 1, "canceled_by": "worker", "cancel_reason": "nothing to do"},
    ),
    "fail": (
        Fail("no such page", code="page.missing"),
        {"status": "failed", "outcome": "failed", "error_code": "page.missing", "attempt": 1},
    ),
    "blocked": (
        Fail("no consent", code="consent.missing", blocked=True),
        {"status": "failed", "outcome": "blocked", "retryable": False, "error_message": "no consent"},
    ),
}


@pytest.mark.parametrize("kind", ["async", "sync"])
@pytest.mark.parametrize("way", ["returned", "raised"])
@pytest.mark.parametrize("signal", SIGNALS)
async def test_the_signal_of_a_handler_decides_its_outcome(
    app: Duly, acting: uuid.UUID, signal: str, way: str, kind: str
) -> None:
    outcome_signal, expected = SIGNALS[signal]

    def end_handler() -> Any:
        if way == "raised":
            raise outcome_signal
        return outcome_signal

    @app.job("signal.async", retry=RETRY_AT_ONCE)
    async def async_handler() -> int | Retry | Snooze | Cancel | Fail:
        return end_handler()

    @app.job("signal.sync", retry=RETRY_AT_ONCE)
    def sync_handler() -> int | Retry | Snooze | Cancel | Fail:
        return end_handler()

    handle = await (async_handler if kind == "async" else sync_handler).enqueue()
    await settle_attempts(app)
    job = await handle.status()
    assert job.model_dump(include=set(expected)) == expected
    if job.status == "queued":
        assert job.run_at - job.updated_at >= timedelta(seconds=99)


async def test_a_snoozed_job_runs_again_without_spending_attempts(app: Duly, acting: uuid.UUID) -> None:
    attempts = []

    @app.job("step.take", retry=TWO_ATTEMPTS)
    async def take(ctx: Context) -> str:
        attempts.append(ctx.attempt)
        if len(attempts) < 6:
            raise Snooze(0.001)
        return "done"

    handle = await take.enqueue()
    job = await run_until_ended(app, handle)
    assert (job.outcome, job.attempt, attempts) == ("succeeded", 1, [1] * 6)
    assert (await event_types(handle)).count("snoozed") == 5


async def test_retries_of_an_org_against_one_dependency_are_rate_limited(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("crm.sync", retry=RETRY_AT_ONCE, dependency="crm")
    async def sync(n: int) -> None:
        raise ConnectionError("down")

    @app.job("mail.send", retry=TWO_ATTEMPTS)  # at most three retries, within the burst of five
    async def send(n: int) -> None:
        raise Retry(after=0.001)

    await app.enqueue_many([*(sync.call(n) for n in range(30)), *(send.call(n) for n in range(3))])
    # One retry per ten seconds with a burst of five: the others are delayed.
    await settle_attempts(app, 33, retries_per_second=0.1, retry_burst=5, slots=1)
    waits = {
        job_type: [wait for (wait,) in rows]
        for job_type in ("crm.sync", "mail.send")
        if (
            rows := sql.execute(
                "select extract(epoch from run_at - updated_at)::float from duly.jobs "
                "where job_type = %s and attempt = 1 order by run_at",
                [job_type],
            ).fetchall()
        )
    }
    late = [wait for wait in waits["crm.sync"] if wait > 5]
    assert len(late) >= 10
    assert max(late) > 100
    assert all(wait < 5 for wait in waits.get("mail.send", [])), "another dependency has a budget of its own"
