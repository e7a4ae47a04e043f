"""Read the status of jobs in one round trip, in batches of one org.

Callers that arrive while jobs of their org are read share the next read: it begins after their call, so that
it contains every change they already know of.
"""

from __future__ import annotations

import asyncio
from itertools import chain, islice
from typing import NamedTuple
from uuid import UUID
from weakref import WeakKeyDictionary

from pydantic import TypeAdapter
from pydantic_core import from_json

from duly.core.freshness import Assessment
from duly.core.job import JobSnapshot
from duly.db.database import Database
from duly.db.prepared import StatementValues
from duly.jobs.stale_jobs import JobEvidence

_EVIDENCE = TypeAdapter(JobEvidence)
_MAX_BATCH_JOBS = 200


class JobStatusReading(NamedTuple):
    """One job at one time, with the number of its last event and its freshness."""

    job: JobSnapshot
    event_seq: int
    freshness: Assessment


_Pending = dict[UUID, list[asyncio.Future[JobStatusReading | None]]]


async def read_status(database: Database, org_id: UUID, job_id: UUID) -> JobStatusReading | None:
    """Return the status of one job, or None if this org has no job of that id."""
    batcher = _batchers.get(database)
    if batcher is None:
        batcher = _batchers[database] = _StatusBatcher()
    return await batcher.read(database, org_id, job_id)


async def read_statuses(
    database: Database, org_id: UUID, job_ids: list[UUID]
) -> dict[UUID, JobStatusReading]:
    """Return the status of jobs of an org in one snapshot."""
    name = "jobs/read_status" if len(job_ids) == 1 else "jobs/read_statuses"
    values: StatementValues = {
        "org_id": org_id,
        "job_id": job_ids[0],
        "org_ids": [org_id] * len(job_ids),
        "job_ids": job_ids,
    }
    rows, evidence = await database.read_in_one_snapshot(org_id, name, "stale_jobs/read_evidence", values)
    assessed = {one.job_id: one.assess() for one in map(_EVIDENCE.validate_json, evidence)}
    jobs = [(JobSnapshot.model_validate(row), row["event_seq"]) for row in map(from_json, rows)]
    return {job.job_id: JobStatusReading(job, seq, assessed[job.job_id]) for job, seq in jobs}


class _StatusBatcher:
    """Collects the callers of each org; an org has an entry as long as a read for it is in progress."""

    # Holds no reference to the database, which is the weak key to the batcher.
    def __init__(self) -> None:
        self._pending: dict[UUID, _Pending] = {}
        self._readers: set[asyncio.Task[None]] = set()

    async def read(self, database: Database, org_id: UUID, job_id: UUID) -> JobStatusReading | None:
        pending = self._pending.get(org_id)
        if pending is not None:
            result: asyncio.Future[JobStatusReading | None] = asyncio.get_running_loop().create_future()
            pending.setdefault(job_id, []).append(result)
            return await result
        self._pending[org_id] = {}
        try:
            return (await read_statuses(database, org_id, [job_id])).get(job_id)
        finally:
            self._start_reader(database, org_id)

    def _start_reader(self, database: Database, org_id: UUID) -> None:
        if not self._pending[org_id]:
            del self._pending[org_id]
            return
        task = asyncio.get_running_loop().create_task(
            self._read_pending(database, org_id), name="duly-status-batcher"
        )
        self._readers.add(task)
        task.add_done_callback(self._readers.discard)

    async def _read_pending(self, database: Database, org_id: UUID) -> None:
        """Read until no caller of the org is pending."""
        try:
            while pending := self._pending[org_id]:
                batch = {job_id: pending.pop(job_id) for job_id in [*islice(pending, _MAX_BATCH_JOBS)]}
                await _read_batch(database, org_id, batch)
        finally:
            for result in chain(*self._pending.pop(org_id).values()):
                result.cancel()


async def _read_batch(database: Database, org_id: UUID, batch: _Pending) -> None:
    """Read the jobs of a batch; an error fails all its callers."""
    try:
        statuses = await read_statuses(database, org_id, list(batch))
        for job_id, results in batch.items():
            for result in results:
                if not result.done():
                    result.set_result(statuses.get(job_id))
    except Exception as error:
        for result in chain(*batch.values()):
            if not result.done():
                result.set_exception(error)
    finally:
        for result in chain(*batch.values()):
            result.cancel()


_batchers: WeakKeyDictionary[Database, _StatusBatcher] = WeakKeyDictionary()
