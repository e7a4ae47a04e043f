"""Cancel jobs: at once or by request, audited once."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta

import psycopg
import pytest

from duly import Actor, Duly, errors
from duly.features.jobs.service import Jobs
from tests.worker.blocking_jobs import (
    NEVER,
    SOON,
    BlockingJobs,
    assert_completed,
    enqueue,
    fetch_value,
    running_workers,
)

ANNA = Actor.operator("anna")
HOUR = timedelta(hours=1)


async def test_a_cancellation_by_an_operator_is_audited_and_ends_a_queued_job(
    jobs: Jobs, blocking: BlockingJobs, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    [handle] = await enqueue(blocking.build, org, [1])
    assert await jobs.cancel(org, str(handle.job_id), actor=ANNA, reason="wrong button") == "canceled"
    job = await handle.status()
    assert (job.canceled_by, job.cancel_reason) == ("user", "wrong button")
    assert await jobs.cancel(org, handle.job_id, actor=ANNA, reason="once more") == "canceled"
    rows = sql.execute(
        "select action, actor_id, target_id, reason, detail from duly.audit_entries"
    ).fetchall()
    entry = (str(handle.job_id), "wrong button", {"answer": "canceled"})
    assert rows == [("job.cancel_requested", "anna", *entry)]


async def test_of_concurrent_cancellations_only_the_effective_one_is_audited(
    jobs: Jobs, blocking: BlockingJobs, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    [handle] = await enqueue(blocking.build, org, [1])
    asking = (jobs.cancel(org, handle.job_id, actor=ANNA, reason=f"reason {n}") for n in range(8))
    assert set(await asyncio.gather(*asking)) == {"canceled"}
    rows = sql.execute("select reason from duly.audit_entries").fetchall()
    assert rows == [((await handle.status()).cancel_reason,)]


async def test_repeated_cancellation_requests_are_audited_once(
    app: Duly, jobs: Jobs, blocking: BlockingJobs, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    [handle] = await enqueue(blocking.build, org, [1])
    async with running_workers(app, poll=NEVER, heartbeat=HOUR, lease=3 * HOUR):
        await blocking.wait_until_started(1)
        for reason in ("stop it", "stop it, please"):
            assert await jobs.cancel(org, handle.job_id, actor=ANNA, reason=reason) == "running"
        rows = sql.execute("select action, reason, detail from duly.audit_entries").fetchall()
        blocking.release.set()
    assert rows == [("job.cancel_requested", "stop it", {"answer": "requested"})]


async def test_canceling_a_running_job_is_a_request(
    app: Duly, jobs: Jobs, blocking: BlockingJobs, org: uuid.UUID
) -> None:
    [handle] = await enqueue(blocking.build, org, [1])
    async with running_workers(app, cancel_grace=timedelta(0), heartbeat=SOON):
        await blocking.wait_until_started(1)
        assert await jobs.cancel(org, handle.job_id, actor=ANNA, reason="stop it") in ("running", "canceled")
        assert (await handle.wait(60)).status == "canceled"
    with pytest.raises(errors.UnknownJob):
        await jobs.cancel(org, uuid.uuid4(), actor=ANNA, reason="r")


async def test_an_ended_job_cannot_be_canceled_and_nothing_is_audited(
    app: Duly, jobs: Jobs, blocking: BlockingJobs, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    blocking.release.set()
    handles = await enqueue(blocking.build, org, [1])
    async with running_workers(app):
        await assert_completed(handles)
    with pytest.raises(errors.AlreadyFinished):
        await jobs.cancel(org, handles[0].job_id, actor=ANNA, reason="too late")
    assert fetch_value(sql, "select count(*) from duly.audit_entries") == 0
