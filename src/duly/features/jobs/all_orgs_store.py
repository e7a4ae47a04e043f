"""Lists of the jobs of all orgs, for who runs the installation; each is served by an index that has no org.

Ended jobs and new ones are found by their events, the last first, for as long as those are kept. Active ones
are found where they are: held by workers, then waiting, in the order of the queues, then those of the future.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from duly.core.states import Status
from duly.db.pool import Connection
from duly.db.statements import statement
from duly.features.jobs.filter_store import NEWEST, Choice, Place

Look = tuple[list[Place], Place | None]
_LAST_XID = 2**63 - 1
_LAST_SKIP = 2**31 - 1
_NOBODY = UUID(int=0)
_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
_FIRST_RANK = -32768


async def look(conn: Connection, choice: Choice, after: Place, *, most: int) -> Look:
    """The next jobs of the list, so many at most; and where the look ended, if not at the end of the list."""
    match choice.path:
        case "jobs/list_of_kind":
            return await _by_time(conn, "jobs_all_orgs/of_kind", choice, after, most)
        case "jobs/list":
            return await _by_commit(conn, "job.queued", after, most)
        case "jobs/list_active":
            return await _active(conn, choice, after, most)
    if choice.statuses == (Status.COMPLETED,):
        return await _by_commit(conn, "job.completed", after, most)
    return await _by_time(conn, f"jobs_all_orgs/{choice.statuses[0]}", choice, after, most)


def checked_spot(spot: str) -> str:
    """One that a list of all orgs may have given; ValueError for any other."""
    match spot.split("|"):
        case [""] | ["h"]:
            fits = True
        case ["r", _, org_id, rank]:
            fits = UUID(org_id) != _NOBODY and -(2**15) <= int(rank) < 2**15
        case ["s", org_id]:
            fits = UUID(org_id) != _NOBODY
        case [xid, skip]:
            fits = 0 <= int(xid) <= _LAST_XID and 0 <= int(skip) <= _LAST_SKIP
        case _:
            fits = False
    if not fits:
        raise ValueError(spot)
    return spot


async def find(conn: Connection, job_id: UUID) -> UUID | None:
    """Whose job it is."""
    cursor = await conn.execute(statement("jobs_all_orgs/find"), {"job_id": job_id})
    row = await cursor.fetchone()
    return row[0] if row else None


async def _by_time(conn: Connection, name: str, choice: Choice, after: Place, most: int) -> Look:
    values = {"fingerprint": choice.fingerprint, "before_at": after.at, "before_job": after.job_id}
    found = await _found(conn, name, {**values, "look": most})
    places = [Place(at, job_id, org_id) for org_id, job_id, at in found]
    return places, places[-1] if len(places) == most else None


async def _by_commit(conn: Connection, event_type: str, after: Place, most: int) -> Look:
    """Those of the next events that began or ended a job; the look ends where it ends, whatever it found."""
    xid, skip = after.spot.split("|") if after.spot else (str(_LAST_XID), 0)
    values = {"event_type": event_type, "xid": xid, "skip": int(skip), "look": most}
    read = Counter({xid: int(skip)})
    """How many events of each transaction were read."""
    places: list[Place] = []
    end = after
    for org_id, job_id, commit_xid, is_one in await _found(conn, "jobs_all_orgs/by_commit", values):
        read[commit_xid] += 1
        end = Place(None, job_id, org_id, f"{commit_xid}|{read[commit_xid]}")
        if is_one:
            places.append(end)
    return places, end if sum(read.values()) - int(skip) == most else None


async def _active(conn: Connection, choice: Choice, after: Place, most: int) -> Look:
    """From one stage to the next, until there are enough."""
    places: list[Place] = []
    stages = [name for name, status in _STAGES.items() if status.intersection(choice.statuses)]
    reached = after.spot.partition("|")[0]
    for stage in stages[stages.index(reached) if reached in stages else 0 :]:
        spot = after if stage == reached else NEWEST
        places += await _LOOKS[stage](conn, choice, spot, most - len(places))
        if len(places) == most:
            return places, places[-1]
    return places, None


async def _held(conn: Connection, choice: Choice, after: Place, most: int) -> list[Place]:
    values = {"statuses": list(choice.statuses), "before_job": after.job_id, "look": most}
    return [Place(None, job, org, "h") for org, job in await _found(conn, "jobs_all_orgs/held", values)]


async def _ready(conn: Connection, choice: Choice, after: Place, most: int) -> list[Place]:
    lane, org_id, rank = after.spot.split("|")[1:] if after.spot else ("", str(_NOBODY), _FIRST_RANK)
    values = {"lane": lane, "after_org": UUID(org_id), "rank": int(rank), "queue": choice.queue, "look": most}
    values["after_job"] = after.job_id if after.spot else _NOBODY
    return [
        Place(None, job_id, org_id, f"r|{lane}|{org_id}|{rank}")
        for lane, org_id, rank, job_id in await _found(conn, "jobs_all_orgs/ready", values)
    ]


async def _scheduled(conn: Connection, choice: Choice, after: Place, most: int) -> list[Place]:
    at, org_id, job_id = _BEGINNING, _NOBODY, _NOBODY
    if after.spot:
        at, org_id, job_id = after.at or _BEGINNING, UUID(after.spot.split("|")[1]), after.job_id
    values = {"after_at": at, "after_org": org_id, "after_job": job_id, "look": most}
    return [
        Place(run_at, job_id, org_id, f"s|{org_id}")
        for run_at, org_id, job_id in await _found(conn, "jobs_all_orgs/scheduled", values)
    ]


async def _found(conn: Connection, name: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    return await (await conn.execute(statement(name), values)).fetchall()


_STAGES = {"h": {Status.RUNNING, Status.PARTIAL}, "r": {Status.QUEUED}, "s": {Status.QUEUED}}
_LOOKS: dict[str, Callable[[Connection, Choice, Place, int], Awaitable[list[Place]]]] = {
    "h": _held,
    "r": _ready,
    "s": _scheduled,
}
