"""Jobs in lists, and one job with everything around it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.core.job import JobEvent, JobSnapshot
from duly.core.states import HELD, Status
from duly.db.pool import Connection
from duly.db.rows import rows
from duly.db.statements import statement
from duly.features.jobs import all_orgs_store as everywhere
from duly.features.jobs.filter_store import Choice, Place
from duly.features.limits.models import Limit
from duly.features.pagination import Count, capped_count
from duly.features.queues.models import Queue


class Attempt(BaseModel):
    """One try: by whom, from when to when, and which event ended it."""

    model_config = ConfigDict(frozen=True)

    attempt: int
    worker_id: str
    started_at: datetime
    ended_at: datetime | None
    ended_by: str | None
    detail: dict[str, Any]


class Holder(BaseModel):
    """The worker that holds a job."""

    model_config = ConfigDict(frozen=True)

    name: str
    heartbeat_at: datetime
    lost: bool
    silent: bool


class Owed(BaseModel):
    """A failure callback that did not come yet."""

    model_config = ConfigDict(frozen=True)

    tries: int
    last_error: str | None
    due_at: datetime


class Surrounds(BaseModel):
    """What stands between a job and its next step."""

    model_config = ConfigDict(frozen=True)

    now: datetime
    lane: str
    queue: Queue
    gates: list[Limit]
    worker: Holder | None
    takers: int
    """Living workers that take jobs from its queue."""
    before: int
    """Jobs of its org that come first."""
    claimed: bool
    """Whether a claim names it."""
    queued: bool
    """Whether a queue has it."""
    debt: Owed | None
    """The failure callback that is owed."""


async def look(
    conn: Connection, choice: Choice, after: Place, *, most: int
) -> tuple[list[Place], Place | None]:
    """The next jobs of the list, so many at most; and where the look ended, if not at the end of the list."""
    if choice.keys is not None:
        named = sorted(
            (Place(None, job_id, org_id) for org_id, job_id in choice.keys), key=_by_id, reverse=True
        )
        return [place for place in named if place.job_id < after.job_id], None
    if choice.org_id is None:
        return await everywhere.look(conn, choice, after, most=most)
    values = {**choice.values(), **choice.bounds(after), "look": most}
    cursor = await conn.execute(statement(choice.path), values)
    places = [Place(row[1], row[0], choice.org_id) for row in await cursor.fetchall()]
    return places, places[-1] if len(places) == most else None


async def fit(conn: Connection, choice: Choice, places: Sequence[Place]) -> set[UUID]:
    """Which of them fit what is asked for beyond the list."""
    keys = {"org_ids": [at.org_id for at in places], "job_ids": [at.job_id for at in places]}
    cursor = await conn.execute(statement("jobs/fit"), {**choice.values(), **keys})
    return {row[0] for row in await cursor.fetchall()}


async def read_everywhere(conn: Connection, places: Sequence[Place]) -> dict[UUID, JobSnapshot]:
    """Some jobs of whatever orgs, by their id; on an engine session."""
    keys = {"org_ids": [at.org_id for at in places], "job_ids": [at.job_id for at in places]}
    found = await rows(conn, "jobs_all_orgs/read", keys)
    return {row["job_id"]: JobSnapshot.model_validate(row) for row in found}


async def count_by_status(conn: Connection, org_id: UUID | None, *, most: int) -> dict[Status, Count]:
    """How many jobs of an org, or of all, are in each status, as far as an index tells it."""
    name = "jobs_all_orgs/count_by_status" if org_id is None else "jobs/count_by_status"
    found = await rows(conn, name, {"org_id": org_id, "most": most})
    none = {status: capped_count(0, most) for status in HELD}
    return none | {Status(row["status"]): capped_count(row["n"], most) for row in found}


async def last_events(conn: Connection, org_id: UUID, job_id: UUID, *, limit: int) -> list[JobEvent]:
    """The last events of a job, the oldest of them first."""
    found = await rows(conn, "events/read_last", {"org_id": org_id, "job_id": job_id, "limit": limit})
    return [JobEvent.model_validate(row) for row in reversed(found)]


async def last_attempts(conn: Connection, org_id: UUID, job_id: UUID, *, limit: int) -> list[Attempt]:
    """The last attempts of a job, the oldest of them first."""
    found = await rows(conn, "attempts/read", {"org_id": org_id, "job_id": job_id, "limit": limit})
    return [Attempt.model_validate(row) for row in reversed(found)]


async def look_around(conn: Connection, org_id: UUID, job_id: UUID, *, most: int) -> Surrounds | None:
    """What stands between a job and its next step; None if there is no such job."""
    found = await rows(conn, "jobs/look_around", {"org_id": org_id, "job_id": job_id, "most": most})
    return Surrounds.model_validate(found[0]) if found else None


def _by_id(place: Place) -> UUID:
    return place.job_id
