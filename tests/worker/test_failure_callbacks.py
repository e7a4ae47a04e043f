"""Failure callbacks: each failure is called back once, in the transaction that ends the job."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import psycopg
import pytest

from duly import Context, Duly, Fail, Failure, errors
from duly.core.policy import RetryPolicy
from duly.maintenance.failure_callbacks import FailureCallbackRetrier
from tests.worker.working import (
    ONE_ATTEMPT,
    TWO_ATTEMPTS,
    claim_and_vanish,
    lose_all_workers,
    run_until_ended,
    settle_attempts,
    until,
    working,
)

TABLE = """
    create table public.callback_calls (job_id uuid, outcome text, code text, source text, org_id text);
    grant insert, select on public.callback_calls to duly_tenant;
"""
INSERT_CALL = """
    insert into public.callback_calls
    values (%s, %s, %s, %s, current_setting('duly.org_id'))
"""


@pytest.fixture(autouse=True)
def callback_table(sql: psycopg.Connection[Any]) -> None:
    sql.execute(TABLE)


async def record_call(failure: Failure, conn: Any) -> None:
    job = failure.job
    await conn.execute(INSERT_CALL, [job.job_id, job.outcome, job.error_code, failure.source])


def recorded_calls(sql: psycopg.Connection[Any]) -> list[Any]:
    return sql.execute(
        "select job_id, outcome, code, source, org_id::uuid from public.callback_calls"
    ).fetchall()


def pending_callbacks(sql: psycopg.Connection[Any]) -> list[Any]:
    return sql.execute("select tries, last_error from duly.bridge_debts").fetchall()


async def test_the_failure_callback_commits_with_the_end_of_the_job(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    observed: list[Any] = []

    async def observe(failure: Failure, conn: Any) -> None:
        await record_call(failure, conn)
        # No other session sees the end before the callback's own writes.
        outside = sql.execute("select status from duly.jobs where job_id = %s", [failure.job.job_id])
        observed.append((outside.fetchone(), failure.job.status, failure.payload))

    @app.job("step.fail", on_failed=observe)
    async def fail(n: int) -> Fail:
        return Fail("it is not there", code="no.such.thing")

    handle = await fail.enqueue(7)
    job = await run_until_ended(app, handle)
    assert recorded_calls(sql) == [(handle.job_id, "failed", "no.such.thing", "failed_callback", acting)]
    assert observed == [(("running",), "failed", {"n": 7})]
    assert job.status == "failed"
    assert pending_callbacks(sql) == []


@pytest.mark.parametrize(
    ("declared", "outcome", "expected"),
    [
        ({"on_failed"}, "dead", "on_failed"),
        ({"on_failed", "on_dead"}, "dead", "on_dead"),
        ({"on_failed", "on_dead"}, "failed", "on_failed"),
        ({"on_dead"}, "failed", None),
    ],
)
async def test_exactly_one_callback_runs_for_each_outcome(
    app: Duly, acting: uuid.UUID, declared: set[str], outcome: str, expected: str | None
) -> None:
    called: list[str] = []

    def make(name: str) -> Any:
        async def callback(failure: Failure, conn: Any) -> None:
            called.append(name)

        return callback

    @app.job("step.end", retry=ONE_ATTEMPT, **{name: make(name) for name in declared})
    async def end() -> Fail:
        if outcome == "dead":
            raise RuntimeError("again and again")
        return Fail("it is gone", code="gone")

    job = await run_until_ended(app, await end.enqueue())
    assert job.outcome == outcome
    assert called == ([expected] if expected else [])


async def test_retries_cancellations_and_completions_call_no_failure_callback(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    @app.job("step.flaky", retry=TWO_ATTEMPTS, on_failed=record_call)
    async def flaky(ctx: Context, n: int) -> str:
        if ctx.attempt == 1:
            raise RuntimeError("not yet")
        return "ok"

    never = await flaky.enqueue(1)
    await never.cancel("never mind")
    assert (await run_until_ended(app, await flaky.enqueue(2))).status == "completed"
    assert (recorded_calls(sql), pending_callbacks(sql)) == ([], [])


async def test_a_failing_callback_is_rolled_back_and_retried_and_the_job_ends(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    endings = iter(["error", "sql", "success"])

    async def failing_twice(failure: Failure, conn: Any) -> None:
        await record_call(failure, conn)
        ending = next(endings)
        if ending == "error":
            raise RuntimeError("the callback's own trouble")
        if ending == "sql":
            await conn.execute("select 1/0")

    @app.job("step.fail", on_failed=failing_twice)
    async def fail() -> Fail:
        return Fail("it is gone", code="gone")

    handle = await fail.enqueue()
    assert (await run_until_ended(app, handle)).status == "failed"
    assert recorded_calls(sql) == []
    assert pending_callbacks(sql) == [(1, "RuntimeError: the callback's own trouble")]
    await FailureCallbackRetrier(app).retry_due()
    assert pending_callbacks(sql) == [(1, "RuntimeError: the callback's own trouble")], "not due yet"
    sql.execute("update duly.bridge_debts set due_at = now()")
    await FailureCallbackRetrier(app).retry_due()
    assert [tries for tries, _ in pending_callbacks(sql)] == [2]
    sql.execute("update duly.bridge_debts set due_at = now()")
    await FailureCallbackRetrier(app).retry_due()
    assert pending_callbacks(sql) == []
    assert recorded_calls(sql) == [(handle.job_id, "failed", "gone", "scheduled_reconciler", acting)]


async def test_a_callback_that_ends_the_transaction_does_not_keep_the_job_from_ending(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    async def end_transaction(failure: Failure, conn: Any) -> None:
        await conn.execute("rollback")

    @app.job("step.fail", on_failed=end_transaction)
    async def fail() -> Fail:
        return Fail("it is gone", code="gone")

    handle = await fail.enqueue()
    assert (await run_until_ended(app, handle)).status == "failed"
    assert len(pending_callbacks(sql)) == 1
    await FailureCallbackRetrier(app).retry_due()
    assert [tries for tries, _ in pending_callbacks(sql)] == [1], (
        "the retrier does not call it at every sweep"
    )


async def test_a_process_that_does_not_declare_the_callback_leaves_it_to_one_that_does(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    @app.job("step.fail", retry=ONE_ATTEMPT, on_dead=record_call)
    async def fail() -> None: ...

    handle = await fail.enqueue()
    await claim_and_vanish(app, handle.job_id)
    async with Duly(app.settings) as other:
        await lose_all_workers(other, sql)
        await FailureCallbackRetrier(other).retry_due()
    assert (await handle.status()).outcome == "dead"
    assert (recorded_calls(sql), pending_callbacks(sql)) == ([], [(0, None)])
    await asyncio.gather(*(FailureCallbackRetrier(app).retry_due() for _ in range(3)))
    assert recorded_calls(sql) == [(handle.job_id, "dead", "lease_lost", "scheduled_reconciler", acting)]
    assert pending_callbacks(sql) == []


async def test_the_reaper_calls_the_failure_callback_of_a_job_that_it_ends(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    @app.job("step.fail", retry=ONE_ATTEMPT, on_dead=record_call)
    async def fail() -> None: ...

    handle = await fail.enqueue()
    await claim_and_vanish(app, handle.job_id)
    await lose_all_workers(app, sql)
    assert recorded_calls(sql) == [(handle.job_id, "dead", "lease_lost", "failed_callback", acting)]
    assert pending_callbacks(sql) == []


async def test_each_of_many_failures_is_called_back_once(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    @app.job("step.fail", on_failed=record_call)
    async def fail(n: int) -> Fail:
        return Fail("it is gone", code="gone")

    @app.job("step.succeed")
    async def succeed(n: int) -> int:
        return n

    calls = [call for n in range(150) for call in (fail.call(n), succeed.call(n))]
    handles = await app.enqueue_many(calls)
    async with working(app), working(app):
        for handle in handles:
            await handle.wait(60)
    assert {len(recorded_calls(sql)), len({row[0] for row in recorded_calls(sql)})} == {150}


async def test_a_callback_that_hangs_times_out(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duly.jobs.failure_callbacks._CALLBACK_TIMEOUT", 0.2)

    async def hang(failure: Failure, conn: Any) -> None:
        await conn.execute("select pg_sleep(60)")

    @app.job("step.fail", on_failed=hang)
    async def fail() -> Fail:
        return Fail("it is gone", code="gone")

    handle = await fail.enqueue()
    assert (await run_until_ended(app, handle)).status == "failed"
    assert [tries for tries, _ in pending_callbacks(sql)] == [1]


def _plain(failure: Failure, conn: Any) -> None: ...
async def _short(failure: Failure) -> None: ...
async def _named(*, failure: Failure, conn: Any) -> None: ...


@pytest.mark.parametrize(
    ("callback", "message"),
    [(_plain, "not async"), (_short, "wrong signature"), (_named, "wrong signature")],
)
def test_a_callback_that_cannot_be_called_is_refused(app: Duly, callback: Any, message: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=f"on_failed: {message}"):

        @app.job("step.fail", on_failed=callback)
        async def fail() -> None: ...


async def test_an_object_can_be_the_callback(app: Duly, acting: uuid.UUID) -> None:
    class RecordingCallback:
        def __init__(self) -> None:
            self.jobs: list[uuid.UUID] = []

        async def __call__(self, failure: Failure, conn: Any) -> None:
            self.jobs.append(failure.job.job_id)

    callback = RecordingCallback()

    @app.job("step.fail", on_failed=callback)
    async def fail() -> Fail:
        return Fail("it is gone", code="gone")

    handle = await fail.enqueue()
    await run_until_ended(app, handle)
    assert callback.jobs == [handle.job_id]


DEFERRED = """
    create table public.project (id integer primary key);
    create table public.notes (id integer references public.project deferrable initially deferred);
    grant insert on public.notes to duly_tenant;
"""


async def test_a_callback_that_fails_at_commit_affects_no_other_job(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    sql.execute(DEFERRED)

    async def late(failure: Failure, conn: Any) -> None:
        await conn.execute("insert into public.notes values (1)")

    @app.job("step.bad", retry=ONE_ATTEMPT, on_failed=late)
    async def bad(n: int) -> Fail:
        return Fail("it is gone", code="gone")

    @app.job("step.good", retry=ONE_ATTEMPT, on_failed=record_call)
    async def good(n: int) -> Fail:
        return Fail("it is gone", code="gone")

    first, second = await bad.enqueue(1), await good.enqueue(1)
    assert {(await run_until_ended(app, handle)).status for handle in (first, second)} == {"failed"}
    held = await bad.enqueue(2)
    await claim_and_vanish(app, held.job_id)
    await lose_all_workers(app, sql)
    assert (await held.status()).outcome == "dead", "the callback does not stop the reaper"
    await FailureCallbackRetrier(app).retry_due()
    assert [tries for tries, _ in pending_callbacks(sql)] == [1, 1]
    assert [row[0] for row in recorded_calls(sql)] == [second.job_id]


@pytest.mark.parametrize("end", [asyncio.CancelledError, SystemExit])
async def test_a_callback_that_raises_a_base_exception_is_retried_later(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any], end: type[BaseException]
) -> None:
    async def leave(failure: Failure, conn: Any) -> None:
        raise end

    @app.job("step.fail", on_failed=leave)
    async def fail(n: int) -> Fail:
        return Fail("it is gone", code="gone")

    handles = [await fail.enqueue(n) for n in range(3)]
    async with working(app):
        for handle in handles:
            assert (await handle.wait(30)).status == "failed"
    assert [tries for tries, _ in pending_callbacks(sql)] == [1, 1, 1]


async def test_the_last_failed_attempt_calls_the_callback_of_a_dead_job(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    @app.job("step.flaky", retry=RetryPolicy(max_attempts=1), on_failed=record_call)
    async def flaky() -> None:
        raise RuntimeError("the only chance")

    handle = await flaky.enqueue()
    await settle_attempts(app)
    assert [(row[0], row[1]) for row in recorded_calls(sql)] == [(handle.job_id, "dead")]


async def test_a_slow_callback_delays_no_other_job(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    inside, go = asyncio.Event(), asyncio.Event()

    async def slow(failure: Failure, conn: Any) -> None:
        inside.set()
        await go.wait()

    @app.job("step.fail", on_failed=slow)
    async def fail() -> Fail:
        return Fail("it is gone", code="gone")

    @app.job("step.succeed")
    async def succeed(n: int) -> int:
        if n == 0:
            await inside.wait()
        return n

    # One claim holds all of them: two tasks settle its jobs concurrently.
    handles = await app.enqueue_many([fail.call(), *(succeed.call(n) for n in range(20))])
    async with working(app):
        for handle in handles[1:]:
            assert (await handle.wait(30)).status == "completed"
        assert (await handles[0].status()).status == "running"
        go.set()
        assert (await handles[0].wait(30)).status == "failed"
        await app.enqueue_many([succeed.call(99)])
        await until(sql, "select count(*) = 0 from duly.claims")
