"""Polls that come at the same time share a look, and each sees what was so when it asked."""

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


class Looks:
    """The real looks, noted; and held back after they have looked, for as long as a test wants."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs: list[set[uuid.UUID]] = []
        self.looked, self.open = asyncio.Event(), asyncio.Event()
        monkeypatch.setattr(status_batcher, "read_statuses", self._look)

    async def _look(
        self, database: Any, org_id: uuid.UUID, job_ids: list[uuid.UUID]
    ) -> dict[uuid.UUID, JobStatusReading]:
        self.jobs.append(set(job_ids))
        found = await _real(database, org_id, job_ids)
        self.looked.set()
        await self.open.wait()
        return found


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    return Looks(monkeypatch)


@pytest.fixture
def jobs(app: Duly) -> Jobs:
    return Jobs(app)


def asking(jobs: Jobs, handle: Handle[Any]) -> asyncio.Task[JobStatusReading]:
    return asyncio.create_task(jobs.status(handle.org_id, handle.job_id))


async def test_callers_during_a_read_share_the_next_one_which_sees_their_changes(
    app: Duly, jobs: Jobs, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_batcher, "_MAX_BATCH_JOBS", 2)
    mine, theirs = await create_orgs(app, 2)
    build = BlockingJobs(app).build
    [one, two, three], [foreign] = await enqueue(build, mine, [1, 2, 3]), await enqueue(build, theirs, [4])
    first = asking(jobs, one)
    await looks.looked.wait()
    await cancel(one)
    later = [asking(jobs, handle) for handle in (one, one, two, three)]
    unknown = asyncio.create_task(jobs.status(mine, foreign.job_id))
    other = asking(jobs, foreign)
    looks.open.set()
    assert (await first).job.status == "queued"
    assert [seen.job.status for seen in await asyncio.gather(*later)] == ["canceled"] * 2 + ["queued"] * 2
    assert (await other).job.job_id == foreign.job_id
    with pytest.raises(errors.UnknownJob):
        await unknown
    # Two at a time, each job once; the other org does not wait for them.
    names = {one.job_id: "one", two.job_id: "two", three.job_id: "three", foreign.job_id: "foreign"}
    said = [sorted(names[job] for job in some) for some in looks.jobs]
    assert said[0] == ["one"]
    assert sorted(said[1:]) == [["foreign"], ["foreign", "three"], ["one", "two"]]
    assert (await jobs.status(mine, two.job_id)).event_seq == 1


async def test_a_canceled_caller_does_not_affect_others(app: Duly, jobs: Jobs, looks: Looks) -> None:
    [org] = await create_orgs(app, 1)
    [one, two] = await enqueue(BlockingJobs(app).build, org, [1, 2])
    leading = asking(jobs, one)
    await looks.looked.wait()
    staying, going = asking(jobs, two), asking(jobs, two)
    await asyncio.wait([staying], timeout=0)
    leading.cancel()
    going.cancel()
    looks.open.set()
    gone = await asyncio.gather(leading, going, return_exceptions=True)
    assert [type(error) for error in gone] == [asyncio.CancelledError] * 2
    assert (await staying).job.job_id == two.job_id
    assert (await jobs.status(org, one.job_id)).job.job_id == one.job_id


async def test_an_error_fails_each_caller_and_the_next_read_works(
    app: Duly, jobs: Jobs, looks: Looks, sql: psycopg.Connection
) -> None:
    [org] = await create_orgs(app, 1)
    [one, two] = await enqueue(BlockingJobs(app).build, org, [1, 2])
    leading = asking(jobs, one)
    await looks.looked.wait()
    others = [asking(jobs, two), asking(jobs, one)]
    await asyncio.wait(others, timeout=0)
    sql.execute("alter table duly.workers rename column heartbeat_at to gone")
    looks.open.set()
    assert (await leading).event_seq == 1
    wrong = await asyncio.gather(*others, return_exceptions=True)
    assert [type(error) for error in wrong] == [psycopg.errors.UndefinedColumn] * 2
    sql.execute("alter table duly.workers rename column gone to heartbeat_at")
    assert (await jobs.status(org, two.job_id)).event_seq == 1
