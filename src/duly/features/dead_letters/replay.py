"""What is done about dead letters, inside one transaction. A letter is resolved once, under its lock."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from duly.core.errors import AlreadyResolved, Conflict, UnknownJob
from duly.db.pool import Connection
from duly.features.dead_letters import store as dead
from duly.features.dead_letters.store import (
    Choice,
    DeadLetter,
    LockedLetter,
    Order,
    Place,
    Replayed,
    Replays,
    Resolution,
    Wanted,
)
from duly.features.system_jobs import check_may_change, may_change
from duly.jobs import store as job_store


async def succeed(conn: Connection, order: Order, wanted: Wanted, resolution: Resolution) -> Replayed:
    """Close a letter with a new job; a second replay finds the job of the first."""
    letter = await _locked(conn, order, wanted.job_id)
    check_may_change(order.actor, letter.job_type)
    if letter.resolution is not None:
        if letter.successor_job_id is None or not letter.resolution == resolution == Resolution.REPLAYED:
            raise resolved(letter)
        return Replayed(letter.successor_job_id, created=False)
    replayed = await _replayed(conn, order, wanted)
    await dead.resolve(conn, order, resolution, {letter: replayed.job_id})
    return replayed


async def discard(conn: Connection, order: Order, job_id: UUID) -> None:
    """Close a letter for good."""
    letter = await _locked(conn, order, job_id)
    if letter.resolution is None:
        await dead.resolve(conn, order, Resolution.DISCARDED, {letter: None})
    elif letter.resolution != Resolution.DISCARDED:
        raise resolved(letter)


async def rerun(conn: Connection, order: Order, wanted: Wanted) -> Replayed:
    """Do an ended job again; a dead one whose letter is open is replayed, or fixed."""
    job_id = wanted.job_id
    ended = await job_store.read_job(conn, order.org_id, job_id)
    if ended is None:
        raise UnknownJob(f"no job {job_id} in this org", field="job_id", fix="check the id and the org")
    check_may_change(order.actor, ended.job_type)
    if not ended.status.terminal:
        raise Conflict(f"{job_id} is {ended.status}", field="job_id", fix="cancel it, or wait for its end")
    letter = await dead.lock(conn, order.org_id, job_id)
    if letter is not None and letter.resolution is None:
        fixed = wanted.payload is not None
        return await succeed(conn, order, wanted, Resolution.FIXED if fixed else Resolution.REPLAYED)
    replayed = await _replayed(conn, order, wanted)
    if not replayed.created and wanted.payload is not None:
        said = f"{replayed.job_id} does it again already, with another payload"
        raise Conflict(said, field="job_id", fix="wait for its end, or cancel it")
    if replayed.created:
        detail = {"successor_job_id": str(replayed.job_id)}
        await dead.note(conn, order, "job.rerun", job_id, ended.correlation_id, detail)
    return replayed


class Batch(NamedTuple):
    """Some letters of many, to be replayed or discarded in one transaction."""

    order: Order
    choice: Choice
    after: Place
    size: int
    seen: int = 0
    """How many letters come before these."""
    pace: float = 0.0
    """The seconds between two new jobs."""

    async def replay(self, conn: Connection) -> tuple[list[Replayed], dict[UUID, str], Place | None]:
        """The new jobs, the letters that stay with the reason, and where to go on."""
        order = self.order
        letters = await dead.lock_open(conn, order.org_id, self.choice, after=self.after, limit=self.size)
        wanted = [
            Wanted(letter.job_id, (self.seen + n) * self.pace)
            for n, letter in enumerate(letters)
            if may_change(order.actor, letter.job_type)
        ]
        replays = await dead.replay(conn, order, wanted)
        done = {letter: replays.done[letter.job_id] for letter in letters if letter.job_id in replays.done}
        await dead.resolve(conn, order, Resolution.REPLAYED, {x: made.job_id for x, made in done.items()})
        left = {x.job_id: self._why_not(x, replays) for x in letters if x not in done}
        return [*done.values()], left, letters[-1].place if len(letters) == self.size else None

    async def discard(self, conn: Connection) -> tuple[int, Place | None]:
        """How many are out of the box, and where to go on."""
        order = self.order
        letters = await dead.lock_open(conn, order.org_id, self.choice, after=self.after, limit=self.size)
        theirs = [letter for letter in letters if may_change(order.actor, letter.job_type)]
        await dead.resolve(conn, order, Resolution.DISCARDED, dict.fromkeys(theirs))
        return len(theirs), letters[-1].place if len(letters) == self.size else None

    def _why_not(self, letter: LockedLetter, replays: Replays) -> str:
        if not may_change(self.order.actor, letter.job_type):
            return f"{letter.job_type} is a system job of Duly"
        return _why_not(letter.job_id, replays)


async def _locked(conn: Connection, order: Order, job_id: UUID) -> LockedLetter:
    letter = await dead.lock(conn, order.org_id, job_id)
    if letter is None:
        raise no_letter(job_id)
    return letter


async def _replayed(conn: Connection, order: Order, wanted: Wanted) -> Replayed:
    job_id, replays = wanted.job_id, await dead.replay(conn, order, [wanted])
    if job_id in replays.done:
        return replays.done[job_id]
    fix = "wait for its end, or cancel it" if job_id in replays.held else "enqueue it anew"
    raise Conflict(_why_not(job_id, replays), field="job_id", fix=fix)


def _why_not(job_id: UUID, replays: Replays) -> str:
    if job_id not in replays.held:
        return f"the record of {job_id} is no longer kept"
    holder = replays.held[job_id]
    return (
        f"its run identity is held by {holder}" if holder else "another letter of its run identity goes first"
    )


def no_letter(job_id: UUID) -> UnknownJob:
    """The same answer for an unknown job, for another org's, and for one that did not die."""
    return UnknownJob(
        f"no dead letter of job {job_id} in this org", field="job_id", fix="check the id and the org"
    )


def resolved(letter: LockedLetter | DeadLetter) -> AlreadyResolved:
    """What was done about it already."""
    successor = f"; its successor is {letter.successor_job_id}" if letter.successor_job_id else ""
    return AlreadyResolved(
        f"{letter.job_id} was {letter.resolution} by {letter.resolved_by}{successor}",
        field="job_id",
        fix="a letter is resolved once; `rerun` does the job again",
    )
