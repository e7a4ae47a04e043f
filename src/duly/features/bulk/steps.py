"""One batch of a bulk action: change jobs in one transaction, each with its own audit entry."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

from duly.db.pool import Connection
from duly.features.bulk.plan import Verb
from duly.features.dead_letters import service as dead_letters
from duly.features.dead_letters.models import ReplayedJob, ReplaySpec, Resolution, ResolutionRequest
from duly.features.jobs.filter import JobCursor, JobFilter
from duly.features.jobs.service import canceled_by
from duly.jobs import store as job_store
from duly.worker.claim import ClaimedJob


class BulkOrder(NamedTuple):
    """The verb of a bulk action, its job with the actor, and its reason."""

    verb: Verb
    job: ClaimedJob
    reason: str
    per_second: float | None

    def for_org(self, org_id: UUID) -> ResolutionRequest:
        """Return the order for the jobs of one org."""
        return ResolutionRequest(
            org_id, self.job.actor, self.reason, self.job.request_id, self.job.traceparent
        )


@dataclass
class BatchResult:
    """The result of a batch."""

    done: int = 0
    left: list[str] = field(default_factory=list)
    """A reason for each unchanged job."""
    new_jobs: list[ReplayedJob] = field(default_factory=list)


async def change_jobs(
    conn: Connection, order: BulkOrder, job_filter: JobFilter, jobs: Sequence[JobCursor], *, before: int
) -> BatchResult:
    """Change jobs, org by org; `before` is the number of jobs that earlier batches changed."""
    by_org: dict[UUID, list[UUID]] = defaultdict(list)
    for job in jobs:
        by_org[job.org_id or job_filter.single_org].append(job.job_id)
    result = BatchResult(before)
    # Sorted, like every transaction that locks many rows.
    for org_id in sorted(by_org):
        org_order = order.for_org(org_id)
        match order.verb:
            case Verb.CANCEL:
                await _cancel(conn, org_order, sorted(by_org[org_id]), result)
            case Verb.REPLAY:
                await _replay(conn, org_order, by_org[org_id], order.per_second, result)
            case Verb.DISCARD:
                await _discard(conn, org_order, by_org[org_id], result)
    return replace(result, done=result.done - before)


async def _cancel(
    conn: Connection, order: ResolutionRequest, job_ids: list[UUID], result: BatchResult
) -> None:
    by = canceled_by(order.actor)
    before = await job_store.read_jobs(conn, order.org_id, job_ids)
    for job_id in job_ids:
        job = before.get(job_id)
        if job is None or job.status.terminal:
            result.left.append("ended")
        elif job.cancel_requested_at is not None:
            result.left.append("asked already")
        else:
            answer = await job_store.cancel_job(
                conn, order.org_id, job_id, by=by, reason=order.reason, actor=order.actor
            )
            if answer not in ("canceled", "requested"):
                result.left.append("ended")
                continue
            await dead_letters.record_job_entry(
                conn, order, "job.cancel_requested", job_id, job.correlation_id, {"answer": answer}
            )
            result.done += 1


async def _replay(
    conn: Connection,
    order: ResolutionRequest,
    job_ids: list[UUID],
    per_second: float | None,
    result: BatchResult,
) -> None:
    letters = {
        letter.job_id: letter for letter in await dead_letters.lock_letters(conn, order.org_id, job_ids)
    }
    resolved = {job_id for job_id, letter in letters.items() if letter.resolution is not None}
    unresolved = [job_id for job_id in job_ids if job_id not in resolved]
    requests = [
        ReplaySpec(job_id, None if per_second is None else (result.done + n) / per_second)
        for n, job_id in enumerate(unresolved)
    ]
    replays = await dead_letters.replay_jobs(conn, order, requests)
    new_jobs = {job_id: new for job_id, new in replays.done.items() if new.created}
    closed = {letters[job_id]: new.job_id for job_id, new in replays.done.items() if job_id in letters}
    await dead_letters.resolve_letters(conn, order, Resolution.REPLAYED, closed)
    replayed = await job_store.read_jobs(
        conn, order.org_id, [job_id for job_id in new_jobs if job_id not in letters]
    )
    async with conn.pipeline():
        for job_id, job in replayed.items():
            detail = {"successor_job_id": str(new_jobs[job_id].job_id)}
            await dead_letters.record_job_entry(conn, order, "job.rerun", job_id, job.correlation_id, detail)
    result.new_jobs += new_jobs.values()
    result.done += len(new_jobs)
    result.left += ["resolved already"] * len(resolved)
    for job_id in unresolved:
        if job_id in replays.held:
            result.left.append("its run identity is held")
        elif job_id not in new_jobs:
            result.left.append("replayed already" if job_id in replays.done else "no longer kept")


async def _discard(
    conn: Connection, order: ResolutionRequest, job_ids: list[UUID], result: BatchResult
) -> None:
    letters = await dead_letters.lock_letters(conn, order.org_id, job_ids)
    still_open = [letter for letter in letters if letter.resolution is None]
    await dead_letters.resolve_letters(conn, order, Resolution.DISCARDED, dict.fromkeys(still_open))
    result.done += len(still_open)
    result.left += ["resolved already"] * (len(job_ids) - len(still_open))
