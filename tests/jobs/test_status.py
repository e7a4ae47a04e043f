"""One job at a glance: the job, its last event, its last snapshot and its freshness, of one moment."""

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
from tests.features.overview.filled import all_of, fill
from tests.worker.blocking_jobs import SOON, BlockingJobs, create_orgs, enqueue, running_workers


@pytest.fixture
def jobs(app: Duly) -> Jobs:
    return Jobs(app)


async def look(jobs: Jobs, handle: Handle[object]) -> JobStatusReading:
    """The job as it is, which other ways of looking see as well."""
    seen = await jobs.status(str(handle.org_id), str(handle.job_id))
    assert seen.job == await handle.status()
    shown = await jobs.show(handle.org_id, handle.job_id)
    assert seen.event_seq == shown.events[-1].event_seq == len(shown.events)
    assert (seen.freshness.state, seen.freshness.shown) == (shown.freshness.state, shown.freshness.shown)
    return seen


async def test_the_status_follows_a_job_from_queued_to_completed(
    app: Duly, jobs: Jobs, org: uuid.UUID
) -> None:
    kept, go_on = asyncio.Event(), asyncio.Event()

    @app.job("site.pages", retry=RetryPolicy(base=SOON, cap=SOON))
    async def pages(ctx: Context) -> None:
        await ctx.partial({"page": 1}, percent=50)
        kept.set()
        await go_on.wait()
        if ctx.attempt == 1:
            raise Retry("not yet")

    with context(org_id=org, actor=Actor.user("u1")):
        handle = await pages.enqueue()
    seen = await look(jobs, handle)
    assert (seen.event_seq, seen.job.latest_result_seq, seen.freshness.state) == (1, 0, Freshness.FRESH)
    async with running_workers(app, poll=SOON):
        await kept.wait()
        seen = await look(jobs, handle)
        assert (seen.job.status, seen.event_seq, seen.job.latest_result_seq) == ("partial", 3, 1)
        go_on.set()
        await handle.wait(60)
    seen = await look(jobs, handle)
    assert (seen.job.status, seen.job.latest_result_seq, seen.freshness.state) == ("completed", 3, "terminal")


async def test_the_status_contains_the_freshness(app: Duly, jobs: Jobs, sql: psycopg.Connection) -> None:
    [org] = await create_orgs(app, 1)
    fill(sql, org)
    sql.execute("update duly.workers set heartbeat_at = heartbeat_at - interval '2 hours'")
    [held] = [row["job_id"] for row in all_of(sql, org) if row["status"] == "running"][-1:]
    page = await jobs.list(org, limit=50)
    judged = await jobs.freshness(org, page.jobs)
    assert judged.keys() == {job.job_id for job in page.jobs}
    for job in page.jobs:
        seen = await jobs.status(org, job.job_id)
        assert seen.freshness.state is judged[job.job_id].state
    assert "lease_ended_at" in judged[held].evidence
    assert judged[held].shown is FreshnessLabel.LIKELY_STALE
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
    async with Database(fresh.direct_url, size=PoolSize(1, 1)) as one:
        assert await read_status(one, org, handle.job_id)
        with pytest.raises(ZeroDivisionError):
            async with one.tenant(org) as conn:
                for _ in range(10):  # often enough for psycopg to prepare it, and to drop everything later
                    await conn.execute("select %s::int", [1])
                raise ZeroDivisionError
        assert await read_status(one, org, handle.job_id)


async def test_a_status_is_read_with_and_without_prepared_statements(
    app: Duly, org: uuid.UUID, fresh: FreshDatabase
) -> None:
    [handle] = await enqueue(BlockingJobs(app).build, org, [1])

    async def check(database: Database) -> None:
        seen = await read_status(database, org, handle.job_id)
        assert seen is not None
        assert seen.job == await handle.status()

    async with Database(fresh.url, pooled=True) as pooled, Database(fresh.direct_url) as direct:
        await check(pooled)
        await check(direct)
        async with direct.engine() as conn:
            assert conn.prepared == {"jobs/read_status", "stale_jobs/read_evidence"}
            conn.prepared = frozenset()  # as if an attempt had been cut off
        await check(direct)
        async with direct.engine() as conn:
            await conn.execute("select 1", prepare=True)
            with suppress(ZeroDivisionError):
                async with conn.transaction():
                    raise ZeroDivisionError
            # The driver has forgotten all that it knows of, and ours with it.
            assert await (await conn.execute("select from pg_prepared_statements")).fetchall() == []
        await check(direct)
        await check(direct)
