"""Handlers: arguments, context, results, priorities and timeouts."""

from __future__ import annotations

import asyncio
import gc
import threading
import uuid
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from pydantic import BaseModel

from duly import (
    Context,
    Duly,
    Handle,
    SyncContext,
    errors,
)
from duly.blobs import BlobRef, BlobStore
from duly.worker.context.run import JobRun
from tests.worker.working import (
    ONE_ATTEMPT,
    RETRY_AT_ONCE,
    event_types,
    run_until_ended,
    seconds,
    settle_attempts,
    working,
)


class Report(BaseModel):
    region: str
    made_at: datetime


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


async def test_an_async_handler_gets_its_arguments_and_its_result_is_stored(
    app: Duly, acting: uuid.UUID
) -> None:
    @app.job("report.build")
    async def build(region: str, at: datetime) -> Report:
        return Report(region=region, made_at=at)

    handle = await build.enqueue("DE", at=NOON)
    job = await run_until_ended(app, handle)
    assert (job.status, job.outcome, job.attempt, job.progress_percent) == ("completed", "succeeded", 1, 100)
    assert await handle.result() == Report(region="DE", made_at=NOON)
    assert await event_types(handle) == ["queued", "started", "completed"]


async def test_a_sync_handler_runs_in_a_thread(app: Duly, acting: uuid.UUID) -> None:
    @app.job("report.where")
    def where() -> str:
        return threading.current_thread().name

    handle = await where.enqueue()
    await run_until_ended(app, handle)
    assert await handle.result() == "duly-handler"


async def test_async_and_sync_handlers_get_the_context_they_declare(app: Duly, acting: uuid.UUID) -> None:
    calls: dict[str, Any] = {}

    @app.job("context.async")
    async def async_handler(ctx: Context, n: int) -> int:
        calls["async"] = (type(ctx), ctx.attempt, ctx.job.job_id, ctx.job.request_id, n)
        return n

    @app.job("context.sync")
    def sync_handler(ctx: SyncContext, n: int) -> int:
        calls["sync"] = (type(ctx), ctx.attempt, ctx.job.job_id, ctx.job.request_id, n)
        return n

    first, second = await async_handler.enqueue(1), await sync_handler.enqueue(n=2)
    await settle_attempts(app, 2)
    assert calls == {
        "async": (Context, 1, first.job_id, "req-1", 1),
        "sync": (SyncContext, 1, second.job_id, "req-1", 2),
    }


async def test_a_payload_is_validated_again_before_the_run(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    ran = []

    @app.job("report.build", retry=RETRY_AT_ONCE)
    async def build(year: int) -> None:
        ran.append(year)

    handle = await build.enqueue(2026)
    sql.execute("""update duly.job_records set payload = '{"year": "next"}'""")
    job = await run_until_ended(app, handle)
    assert (job.status, job.outcome, job.attempt, job.error_code) == (
        "failed",
        "failed",
        1,
        "contract.invalid",
    )
    assert "payload.year" in (job.error_message or "")
    assert not ran


async def test_large_payloads_and_results_are_stored_as_blobs(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("text.shout")
    async def shout(text: str) -> str:
        return text.upper()

    handle = await shout.enqueue("x" * 100_000)
    job = await run_until_ended(app, handle)
    assert job.request_payload_ref
    [(payload, reference)] = sql.execute("select payload, payload_ref from duly.result_finals").fetchall()
    assert payload is None
    blob = BlobRef.parse(reference)
    assert (blob.org_id, blob.size) == (acting, 100_002)
    assert await handle.result() == "X" * 100_000


async def test_a_payload_that_the_blob_store_never_returns_times_out(
    app: Duly, acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job("text.shout", timeout=seconds(0.5), retry=ONE_ATTEMPT)
    async def shout(text: str) -> str:
        return text.upper()

    async def never(*_: object, **__: object) -> bytes:
        await asyncio.Event().wait()
        raise AssertionError

    handle = await shout.enqueue("x" * 100_000)
    monkeypatch.setattr(BlobStore, "get", never)
    job = await run_until_ended(app, handle)
    assert (job.outcome, job.error_code) == ("dead", "run.timeout")


async def test_a_job_of_an_unknown_type_is_requeued_without_spending_the_attempt(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    other = Duly(app.settings)

    @other.job("known.elsewhere")
    async def elsewhere() -> None: ...

    handle = await elsewhere.enqueue()
    await other.close()
    await settle_attempts(app)
    job = await handle_of(app, handle).status()
    assert (job.status, job.attempt) == ("queued", 0)
    assert (
        seconds(0.2) < job.run_at - job.updated_at < seconds(1)
    )  # other workers may know it; the next delay is longer
    assert sql.execute("select event_type from duly.job_events order by event_seq").fetchall()[-1] == (
        "job.snoozed",
    )


def handle_of(app: Duly, handle: Handle[Any]) -> Handle[Any]:
    return app.handle(handle.job_id)


async def test_an_unknown_policy_field_stops_no_job(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("step.take")
    async def take(n: int) -> int:
        return n

    odd, even = await app.enqueue_many([take.call(n) for n in (1, 2)])
    sql.execute(
        """update duly.job_records set policy = policy || '{"of_a_later_version": 1}' where job_id = %s""",
        [odd.job_id],
    )
    async with working(app) as worker:
        await worker.loop_events.wait("settled", 2)
        later = await take.enqueue(3)
        assert await later.result(30) == 3
    assert await even.result() == 2
    assert await odd.result() == 1


async def test_jobs_run_by_priority_and_then_by_age(app: Duly, acting: uuid.UUID) -> None:
    order = []

    @app.job("step.take")
    async def take(n: int) -> None:
        order.append(n)

    priorities = (0, 5, 0, -3, 50, 5)
    handles = await app.enqueue_many(
        [take.options(priority=p).call(n) for n, p in enumerate(priorities)],
    )
    await settle_attempts(app, len(handles), slots=1)
    assert order == sorted(range(6), key=lambda n: (-priorities[n], handles[n].job_id))


async def test_a_scheduled_job_starts_at_its_time_by_the_databases_clock(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("step.take", schedulable=True)
    async def take() -> None: ...

    [(now,)] = sql.execute("select now()").fetchall()
    handle = await take.options(scheduled_for=now + seconds(0.7)).enqueue()
    # No notification wakes the worker, and its next poll would be far too late.
    job = await run_until_ended(app, handle, poll=seconds(50))
    assert job.started_at
    assert now + seconds(0.7) <= job.started_at < now + seconds(40)


async def test_waiting_for_a_thread_does_not_count_towards_the_timeout(app: Duly, acting: uuid.UUID) -> None:
    pause = threading.Event()

    @app.job("step.take", timeout=seconds(1), retry=RETRY_AT_ONCE)
    def take(n: int) -> None:
        pause.wait(0.4)

    handles = await app.enqueue_many([take.call(n) for n in range(5)])
    async with working(app, threads=1):
        jobs = [await handle.wait() for handle in handles]
    assert [(job.outcome, job.attempt, job.error_count) for job in jobs] == [("succeeded", 1, 0)] * 5


async def test_invalid_worker_options_are_refused_by_name(app: Duly) -> None:
    invalid: dict[str, Any] = {
        "slots": 0,
        "queues": ("q:deadletter",),
        "heartbeat": seconds(20),
        "retries_per_second": 0,
        "lease": seconds(0),
        "poll": seconds(0),
    }
    for field, value in invalid.items():
        with pytest.raises(errors.ConfigurationError) as refused:
            app.worker(**{field: value})
        assert refused.value.field in (field, "heartbeat")


async def test_a_finished_run_is_freed_without_the_garbage_collector(app: Duly, acting: uuid.UUID) -> None:
    @app.job("report.count")
    async def count(n: int) -> int:
        return n

    await app.enqueue_many([count.call(n) for n in range(50)])
    gc.collect()
    gc.disable()
    try:
        async with working(app) as worker:
            await worker.loop_events.wait("settled", 50)
            runs = [item for item in gc.get_objects() if type(item) is JobRun and item.job.org_id == acting]
    finally:
        gc.enable()
    assert runs == []
