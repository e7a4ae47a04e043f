"""What is done to some jobs in one transaction, each audited as if it were alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

from duly.core.outcome import CanceledBy
from duly.db.pool import Connection
from duly.features.bulk.plan import Verb
from duly.features.dead_letters import store as dead
from duly.features.dead_letters.models import Resolution
from duly.features.dead_letters.store import ReplayedJob, ReplaySpec, ResolutionRequest
from duly.features.jobs.filter_store import Choice, Place
from duly.jobs import store as job_store
from duly.worker.claim import ClaimedJob


class Orders(NamedTuple):
    """What is to be done to each, on whose behalf and why."""

    verb: Verb
    job: ClaimedJob
    reason: str
    per_second: float | None

    def order(self, org_id: UUID) -> ResolutionRequest:
        """The same for the jobs of one org."""
        return ResolutionRequest(
            org_id, self.job.actor, self.reason, self.job.request_id, self.job.traceparent
        )


@dataclass
class Tally:
    """What became of some jobs."""

    done: int = 0
    left: list[str] = field(default_factory=list)
    """A reason for each that was left alone."""
    made: list[ReplayedJob] = field(default_factory=list)
    """The new jobs."""


async def act(
    conn: Connection, orders: Orders, choice: Choice, places: Sequence[Place], *, before: int
) -> Tally:
    """Do it to these, org by org; `before` have been done already."""
    by_org: dict[UUID, list[UUID]] = defaultdict(list)
    for place in places:
        by_org[place.org_id or choice.whose].append(place.job_id)
    tally = Tally(before)
    # Sorted, as everybody does who locks many.
    for org_id in sorted(by_org):
        order = orders.order(org_id)
        match orders.verb:
            case Verb.CANCEL:
                await _cancel(conn, order, sorted(by_org[org_id]), tally)
            case Verb.REPLAY:
                await _replay(conn, order, by_org[org_id], orders.per_second, tally)
            case Verb.DISCARD:
                await _discard(conn, order, by_org[org_id], tally)
    return replace(tally, done=tally.done - before)


async def _cancel(conn: Connection, order: ResolutionRequest, job_ids: list[UUID], tally: Tally) -> None:
    by: CanceledBy = "user" if order.actor.type in ("user", "api_key", "operator") else "system"
    before = await job_store.read_jobs(conn, order.org_id, job_ids)
    for job_id in job_ids:
        job = before.get(job_id)
        if job is None or job.status.terminal:
            tally.left.append("ended")
        elif job.cancel_requested_at is not None:
            tally.left.append("asked already")
        else:
            answer = await job_store.cancel_job(
                conn, order.org_id, job_id, by=by, reason=order.reason, actor=order.actor
            )
            if answer not in ("canceled", "requested"):
                tally.left.append("ended")
                continue
            await dead.record_job_entry(
                conn, order, "job.cancel_requested", job_id, job.correlation_id, {"answer": answer}
            )
            tally.done += 1


async def _replay(
    conn: Connection, order: ResolutionRequest, job_ids: list[UUID], per_second: float | None, tally: Tally
) -> None:
    letters = {letter.job_id: letter for letter in await dead.lock_letters(conn, order.org_id, job_ids)}
    resolved = {job_id for job_id, letter in letters.items() if letter.resolution is not None}
    open_to_it = [job_id for job_id in job_ids if job_id not in resolved]
    wanted = [
        ReplaySpec(job_id, None if per_second is None else (tally.done + n) / per_second)
        for n, job_id in enumerate(open_to_it)
    ]
    replays = await dead.replay_jobs(conn, order, wanted)
    made = {job_id: new for job_id, new in replays.done.items() if new.created}
    closed = {letters[job_id]: new.job_id for job_id, new in replays.done.items() if job_id in letters}
    await dead.resolve_letters(conn, order, Resolution.REPLAYED, closed)
    known = await job_store.read_jobs(
        conn, order.org_id, [job_id for job_id in made if job_id not in letters]
    )
    async with conn.pipeline():
        for job_id, job in known.items():
            detail = {"successor_job_id": str(made[job_id].job_id)}
            await dead.record_job_entry(conn, order, "job.rerun", job_id, job.correlation_id, detail)
    tally.made += made.values()
    tally.done += len(made)
    tally.left += ["resolved already"] * len(resolved)
    for job_id in open_to_it:
        if job_id in replays.held:
            tally.left.append("its run identity is held")
        elif job_id not in made:
            tally.left.append("replayed already" if job_id in replays.done else "no longer kept")


async def _discard(conn: Connection, order: ResolutionRequest, job_ids: list[UUID], tally: Tally) -> None:
    letters = await dead.lock_letters(conn, order.org_id, job_ids)
    still_open = [letter for letter in letters if letter.resolution is None]
    await dead.resolve_letters(conn, order, Resolution.DISCARDED, dict.fromkeys(still_open))
    tally.done += len(still_open)
    tally.left += ["resolved already"] * (len(job_ids) - len(still_open))
