"""Concurrent status requests share a read, and each sees changes made before its request."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import psycopg
import pytest

from duly import Duly, Handle, errors
from duly.features.jobs.service import Jobs
from duly.jobs import status_batcher
from duly.jobs.status_batcher import JobStatusReading
from tests.features.jobs.test_status_watcher import cancel
from tests.worker.blocking_jobs import BlockingJobs, create_orgs, enqueue

_real = status_batcher.read_statuses


class HeldReads:
    """Record the reads of statuses, and hold their results until a test sets `release`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs: list[set[uuid.UUID]] = []
        self.done, self.release = asyncio.Event(), asyncio.Event()
        monkeypatch.setattr(status_batcher, "read_statuses", self._read)

    async def _read(
        self, database: Any, org_id: uuid.UUID, job_ids: list[uuid.UUID]
    ) -> dict[uuid.UUID, JobStatusReading]:
        self.jobs.append(set(job_ids))
        statuses = await _real(database, org_id, job_ids)
        self.done.set()
        await self.release.wait()
        return statuses


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> HeldReads:
    return HeldReads(monkeypatch)


@pytest.fixture
def jobs(app: Duly) -> Jobs:
    return Jobs(app)


def request_status(jobs: Jobs, handle: Handle[Any]) -> asyncio.Task[JobStatusReading]:
    return asyncio.create_task(jobs.status(handle.org_id, handle.job_id))


async def test_callers_during_a_read_share_the_next_one_which_sees_their_changes(
    app: Duly, jobs: Jobs, reads: HeldReads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_batcher, "_MAX_BATCH_JOBS", 2)
    mine, theirs = await create_orgs(app, 2)
    build = BlockingJobs(app).build
    [one, two, three], [foreign] = await enqueue(build, mine, [1, 2, 3]), await enqueue(build, theirs, [4])
    first = request_status(jobs, one)
    await reads.done.wait()
    await cancel(one)
    later = [request_status(jobs, handle) for handle in (one, one, two, three)]
    unknown = asyncio.create_task(jobs.status(mine, foreign.job_id))
    other = request_status(jobs, foreign)
    reads.release.set()
    assert (await first).job.status == "queued"
    assert [reading.job.status for reading in await asyncio.gather(*later)] == ["canceled"] * 2 + [
        "queued"
    ] * 2
    assert (await other).job.job_id == foreign.job_id
    with pytest.raises(errors.UnknownJob):
        await unknown
    # Two jobs per read, each job once; the other org does not wait for them.
    names = {one.job_id: "one", two.job_id: "two", three.job_id: "three", foreign.job_id: "foreign"}
    batches = [sorted(names[job] for job in batch) for batch in reads.jobs]
    assert batches[0] == ["one"]
    assert sorted(batches[1:]) == [["foreign"], ["foreign", "three"], ["one", "two"]]
    assert (await jobs.status(mine, two.job_id)).event_seq == 1


async def test_a_canceled_caller_does_not_affect_others(app: Duly, jobs: Jobs, reads: HeldReads) -> None:
    [org] = await create_orgs(app, 1)
    [one, two] = await enqueue(BlockingJobs(app).build, org, [1, 2])
    leading = request_status(jobs, one)
    await reads.done.wait()
    staying, leaving = request_status(jobs, two), request_status(jobs, two)
    await asyncio.wait([staying], timeout=0)
    leading.cancel()
    leaving.cancel()
    reads.release.set()
    canceled = await asyncio.gather(leading, leaving, return_exceptions=True)
    assert [type(error) for error in canceled] == [asyncio.CancelledError] * 2
    assert (await staying).job.job_id == two.job_id
    assert (await jobs.status(org, one.job_id)).job.job_id == one.job_id


async def test_an_error_fails_each_caller_and_the_next_read_works(
    app: Duly, jobs: Jobs, reads: HeldReads, sql: psycopg.Connection
) -> None:
    [org] = await create_orgs(app, 1)
    [one, two] = await enqueue(BlockingJobs(app).build, org, [1, 2])
    leading = request_status(jobs, one)
    await reads.done.wait()
    others = [request_status(jobs, two), request_status(jobs, one)]
    await asyncio.wait(others, timeout=0)
    sql.execute("alter table duly.workers rename column heartbeat_at to gone")
    reads.release.set()
    assert (await leading).event_seq == 1
    failed = await asyncio.gather(*others, return_exceptions=True)
    assert [type(error) for error in failed] == [psycopg.errors.UndefinedColumn] * 2
    sql.execute("alter table duly.workers rename column gone to heartbeat_at")
    assert (await jobs.status(org, two.job_id)).event_seq == 1
