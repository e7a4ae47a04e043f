"""One job with everything that a page about it shows, in few statements."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.core.job import JobEvent, JobSnapshot
from duly.core.states import Outcome, Status
from duly.db.database import Database
from duly.db.pool import Connection
from duly.db.rows import first, rows
from duly.db.statements import statement
from duly.features.jobs.filter_store import id_at
from duly.worker.job_log import REFUSED_LINE_SEQ

_BOUNDS = {
    "first": 20,
    "last": 500,
    "lines": 200,
    "attempts": 100,
    "snapshots": 50,
    "refused": REFUSED_LINE_SEQ,
}
_RELATED = {"depth": 10, "most": 20, "look": 1_000}
_DRIFT = timedelta(minutes=1)


class KeptLine(BaseModel):
    """A line that the job logged."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    attempt: int
    line_seq: int
    logged_at: datetime
    level: str
    message: str
    fields: dict[str, Any] | None


class KeptPartial(BaseModel):
    """A partial snapshot; its value only if it was asked for and lies in its row."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    result_seq: int
    chunk_key: str | None
    created_at: datetime
    large: bool
    payload: Any


class Letter(BaseModel):
    """What the dead letters say of the job."""

    model_config = ConfigDict(frozen=True)

    fingerprint: str
    error_context: dict[str, Any]
    resolution: str | None
    resolved_at: datetime | None
    resolved_by: str | None
    resolve_reason: str | None
    successor_job_id: UUID | None


class Schedule(BaseModel):
    """The schedule that it comes from."""

    model_config = ConfigDict(frozen=True)

    schedule_id: UUID
    name: str


class Relative(BaseModel):
    """Another job, and what it is to this one: `parent`, `child`, `replay_of` or `replayed_by`."""

    model_config = ConfigDict(frozen=True)

    relation: str
    depth: int
    """How many repetitions lie between."""
    job_id: UUID
    job_type: str
    subject_id: str | None
    created_at: datetime
    status: Status
    outcome: Outcome


class Story(BaseModel):
    """What is kept of a job."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    scheduled_for: datetime | None
    parent_id: UUID | None
    metadata: dict[str, Any] | None
    payload: dict[str, Any]
    """Empty if it lies in the blobs."""
    schedule: Schedule | None
    letter: Letter | None
    lines: tuple[KeptLine, ...]
    refusals: tuple[KeptLine, ...]
    snapshots: tuple[KeptPartial, ...]


class Beat(NamedTuple):
    """What changes when the story of a job does."""

    subject_id: str | None
    event_seq: int
    last_line: list[int] | None
    """The attempt and the number of the last line that was logged."""
    refusals: int


async def beat(database: Database, org_id: UUID, job_id: UUID) -> Beat | None:
    """In one round trip; None if this org has no such job."""
    values = {
        "org_id": org_id,
        "job_id": job_id,
        "refused": REFUSED_LINE_SEQ,
        "attempts": _BOUNDS["attempts"],
    }
    found = await database.tenant_statement(org_id, statement("job_detail/beat"), values)
    return Beat(*found[0]) if found else None


async def read(
    conn: Connection, org_id: UUID, job_id: UUID, *, compared: Sequence[int]
) -> tuple[JobSnapshot, Story, list[JobEvent]] | None:
    """The job, what is kept of it and its events; None if this org has none of that id."""
    values = {"org_id": org_id, "job_id": job_id, "compared": list(compared), **_BOUNDS}
    row = await first(conn, "job_detail/read", values)
    if row is None:
        return None
    events = [JobEvent.model_validate(_event(one)) for one in row["events"]]
    return JobSnapshot.model_validate(row), Story.model_validate(row), events


async def relatives(conn: Connection, job: JobSnapshot, story: Story, now: datetime) -> list[Relative]:
    """The jobs around it. Children are looked for among those made while it ran, so many at most."""
    began = job.started_at or now
    values = {
        "org_id": job.org_id,
        "job_id": job.job_id,
        "replay_of": job.replay_of,
        "parent_id": story.parent_id,
        "first_child": max(job.job_id, id_at(began - _DRIFT)),
        "last_child": id_at((job.finished_at or now) + _DRIFT),
    }
    return [
        Relative.model_validate(row) for row in await rows(conn, "job_detail/relatives", values | _RELATED)
    ]


def _event(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "event_id": f"{row['job_id']}:{row['event_seq']}", "payload_json": row["payload"] or {}}
