"""The status of a job: the job, its last event, its last snapshot and its freshness, read at one moment."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress

import psycopg
import pytest

from duly import Actor, Context, Duly, Handle, Retry, RetryPolicy, context, errors
from duly.core.freshness import Freshness, FreshnessLabel
from duly.db.database import Database
from duly.db.pool import PoolSize
from duly.features.jobs.service import Jobs, JobStatusReading
from duly.jobs.status_batcher import read_status
from duly.testing import FreshDatabase
from tests.features.overview.sample_jobs import all_of, fill
from tests.worker.blocking_jobs import SOON, BlockingJobs, create_orgs, enqueue, running_workers


@pytest.fixture
def jobs(app: Duly) -> Jobs:
    return Jobs(app)


async def read_and_compare(jobs: Jobs, handle: Handle[object]) -> JobStatusReading:
    """Read the status; assert that the handle and the job detail agree with it."""
    reading = await jobs.status(str(handle.org_id), str(handle.job_id))
    assert reading.job == await handle.status()
    detail = await jobs.show(handle.org_id, handle.job_id)
    assert reading.event_seq == detail.events[-1].event_seq == len(detail.events)
    assert (reading.freshness.state, reading.freshness.shown) == (
        detail.freshness.state,
        detail.freshness.shown,
    )
    return reading


async def test_the_status_follows_a_job_from_queued_to_completed(
    app: Duly, jobs: Jobs, org: uuid.UUID
) -> None:
    partial_stored, go_on = asyncio.Event(), asyncio.Event()

    @app.job("site.pages", retry=RetryPolicy(base=SOON, cap=SOON))
    async def pages(ctx: Context) -> None:
        await ctx.partial({"page": 1}, percent=50)
        partial_stored.set()
        await go_on.wait()
        if ctx.attempt == 1:
            raise Retry("not yet")

    with context(org_id=org, actor=Actor.user("u1")):
        handle = await pages.enqueue()
    reading = await read_and_compare(jobs, handle)
    assert (reading.event_seq, reading.job.latest_result_seq, reading.freshness.state) == (
        1,
        0,
        Freshness.FRESH,
    )
    async with running_workers(app, poll=SOON):
        await partial_stored.wait()
        reading = await read_and_compare(jobs, handle)
        assert (reading.job.status, reading.event_seq, reading.job.latest_result_seq) == ("partial", 3, 1)
        go_on.set()
        await handle.wait(60)
    reading = await read_and_compare(jobs, handle)
    assert (reading.job.status, reading.job.latest_result_seq, reading.freshness.state) == (
        "completed",
        3,
        "terminal",
    )


async def test_the_status_contains_the_freshness(app: Duly, jobs: Jobs, sql: psycopg.Connection) -> None:
    [org] = await create_orgs(app, 1)
    fill(sql, org)
    sql.execute("update duly.workers set heartbeat_at = heartbeat_at - interval '2 hours'")
    [held] = [row["job_id"] for row in all_of(sql, org) if row["status"] == "running"][-1:]
    page = await jobs.list(org, limit=50)
    freshness = await jobs.freshness(org, page.jobs)
    assert freshness.keys() == {job.job_id for job in page.jobs}
    for job in page.jobs:
        reading = await jobs.status(org, job.job_id)
        assert reading.freshness.state is freshness[job.job_id].state
    assert "lease_ended_at" in freshness[held].evidence
    assert freshness[held].shown is FreshnessLabel.LIKELY_STALE
    assert await jobs.freshness(org, []) == {}


async def test_a_job_of_another_org_is_unknown(app: Duly, jobs: Jobs) -> None:
    mine, theirs = await create_orgs(app, 2)
    [handle] = await enqueue(BlockingJobs(app).build, theirs, [1])
    for job in (handle.job_id, uuid.uuid4()):
        with pytest.raises(errors.UnknownJob) as caught:
            await jobs.status(mine, job)
        assert caught.value.message == f"no job {job} in this org"
    foreign = await Jobs(app).status(theirs, handle.job_id)
    assert await jobs.freshness(mine, [foreign.job]) == {}


async def test_a_status_is_read_under_row_level_security(
    app: Duly, jobs: Jobs, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    [handle] = await enqueue(BlockingJobs(app).build, org, [1])
    await jobs.status(org, handle.job_id)
    sql.execute("alter policy tenant_isolation on duly.job_records using (false)")
    with pytest.raises(errors.UnknownJob):
        await jobs.status(org, handle.job_id)


async def test_a_status_is_read_after_a_rollback_on_its_connection(
    app: Duly, org: uuid.UUID, fresh: FreshDatabase
) -> None:
    [handle] = await enqueue(BlockingJobs(app).build, org, [1])
    async with Database(fresh.direct_url, size=PoolSize(1, 1)) as database:
        assert await read_status(database, org, handle.job_id)
        with pytest.raises(ZeroDivisionError):
            async with database.tenant(org) as conn:
                for _ in range(
                    10
                ):  # often enough that psycopg prepares it, and deallocates everything on rollback
                    await conn.execute("select %s::int", [1])
                raise ZeroDivisionError
        assert await read_status(database, org, handle.job_id)


async def test_a_status_is_read_with_and_without_prepared_statements(
    app: Duly, org: uuid.UUID, fresh: FreshDatabase
) -> None:
    [handle] = await enqueue(BlockingJobs(app).build, org, [1])

    async def check(database: Database) -> None:
        reading = await read_status(database, org, handle.job_id)
        assert reading is not None
        assert reading.job == await handle.status()

    async with Database(fresh.url, pooled=True) as pooled, Database(fresh.direct_url) as direct:
        await check(pooled)
        await check(direct)
        async with direct.engine() as conn:
            assert set(conn.prepared) == {"jobs/read_status", "stale_jobs/read_evidence"}
            conn.prepared = {}  # as if preparing had been interrupted
        await check(direct)
        async with direct.engine() as conn:
            await conn.execute("select 1", prepare=True)
            with suppress(ZeroDivisionError):
                async with conn.transaction():
                    raise ZeroDivisionError
            # The rollback lets psycopg deallocate all prepared statements, including ours.
            assert await (await conn.execute("select from pg_prepared_statements")).fetchall() == []
        await check(direct)
        await check(direct)
