"""Jobs in lists, and one job with everything around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.rows import dict_row
from pydantic import BaseModel, ConfigDict

from duly.model.job import JobEvent, JobSnapshot
from duly.model.states import HELD, Status
from duly.store.gates import Limit
from duly.store.pool import Connection
from duly.store.queues import Queue
from duly.store.statements import statement


class Choice(NamedTuple):
    """Which jobs of an org."""

    org_id: UUID
    status: Status | None = None
    job_type: str | None = None
    subject_id: str | None = None

    @property
    def path(self) -> str:
        """The statement that finds them by an index."""
        if self.subject_id is not None:
            return "jobs/list_of_subject"
        if self.status is None:
            return "jobs/list"
        if self.status.terminal:
            return "jobs/list_ended"
        return "jobs/list_held" if self.status in HELD else "jobs/list_waiting"

    @property
    def of_the_engine(self) -> bool:
        """Whether only the engine can find them: queues and claims are not a tenant's to read."""
        return self.path in ("jobs/list_held", "jobs/list_waiting")

    @property
    def narrow(self) -> bool:
        """Whether some of the jobs that the index finds may not fit."""
        return self.job_type is not None or (self.subject_id is not None and self.status is not None)


class Place(NamedTuple):
    """Where a job lies in its list: by its id, or by when it ended."""

    at: datetime | None
    job_id: UUID


NEWEST = Place(datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))


class Look(NamedTuple):
    """A job that the index found."""

    place: Place
    fits: bool


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


async def look(conn: Connection, choice: Choice, after: Place, *, most: int) -> list[Look]:
    """The next jobs of the list, so many at most, and which of them fit."""
    values = {**choice._asdict(), "before_at": after.at, "before_job": after.job_id, "look": most}
    cursor = await conn.execute(statement(choice.path), values)
    return [Look(Place(row[1], row[0]), row[2]) for row in await cursor.fetchall()]


async def read(conn: Connection, org_id: UUID, job_ids: Sequence[UUID]) -> dict[UUID, JobSnapshot]:
    """Some jobs of an org, by their id."""
    rows = await _rows(conn, "jobs/read_many", {"org_id": org_id, "job_ids": list(job_ids)})
    return {row["job_id"]: JobSnapshot.model_validate(row) for row in rows}


async def last_events(conn: Connection, org_id: UUID, job_id: UUID, *, limit: int) -> list[JobEvent]:
    """The last events of a job, the oldest of them first."""
    rows = await _rows(conn, "events/read_last", {"org_id": org_id, "job_id": job_id, "limit": limit})
    return [JobEvent.model_validate(row) for row in reversed(rows)]


async def last_attempts(conn: Connection, org_id: UUID, job_id: UUID, *, limit: int) -> list[Attempt]:
    """The last attempts of a job, the oldest of them first."""
    rows = await _rows(conn, "attempts/read", {"org_id": org_id, "job_id": job_id, "limit": limit})
    return [Attempt.model_validate(row) for row in reversed(rows)]


async def look_around(conn: Connection, org_id: UUID, job_id: UUID, *, most: int) -> Surrounds | None:
    """What stands between a job and its next step; None if there is no such job."""
    rows = await _rows(conn, "jobs/look_around", {"org_id": org_id, "job_id": job_id, "most": most})
    return Surrounds.model_validate(rows[0]) if rows else None


async def _rows(conn: Connection, name: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement(name), values)
        return await cursor.fetchall()
