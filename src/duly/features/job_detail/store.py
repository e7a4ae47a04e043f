"""Read one job with what its detail shows, in few statements."""

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
from duly.features.job_detail.timeline import Refusal
from duly.features.jobs.filter import min_id_at
from duly.features.limits.models import Limit
from duly.features.queues.models import Queue
from duly.worker.job_log import REFUSED_LINE_SEQ, JobLogLine

MAX_JOBS_AHEAD = 1_000
"""Up to this number, the jobs ahead of a queued job are counted."""
_MAX_ATTEMPTS = 100
_LIMITS = {
    "first": 20,
    "last": 500,
    "log_lines": 200,
    "attempts": _MAX_ATTEMPTS,
    "partial_results": 50,
    "refused": REFUSED_LINE_SEQ,
}
_RELATIVE_LIMITS = {"depth": 10, "limit": 20, "scanned": 1_000}
_MAX_CLOCK_SKEW = timedelta(minutes=1)


class _StoredRow(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Attempt(_StoredRow):
    """An attempt: its worker, its time, and the event that ended it."""

    attempt: int
    worker_id: str
    started_at: datetime
    ended_at: datetime | None
    ended_by: str | None
    detail: dict[str, Any]


class AttemptWorker(_StoredRow):
    """The worker that runs a job."""

    name: str
    heartbeat_at: datetime
    lost: bool
    silent: bool


class CallbackState(_StoredRow):
    """A failure callback that was not delivered yet."""

    tries: int
    last_error: str | None
    due_at: datetime


class JobConditions(_StoredRow):
    """The conditions of a job's next step."""

    now: datetime
    queue: Queue
    gates: list[Limit]
    worker: AttemptWorker | None
    claimers: int
    """Living workers that claim jobs from its queue."""
    jobs_ahead: int
    """Jobs of its org that come first."""
    claimed: bool
    """Whether a claim contains the job."""
    queued: bool
    """Whether a queue contains the job."""
    callback: CallbackState | None


class PartialResultRow(_StoredRow):
    """A partial result; with its value if that is to be compared and stored in the row."""

    result_seq: int
    chunk_key: str | None
    created_at: datetime
    large: bool
    payload: Any


class JobDeadLetter(_StoredRow):
    """The dead letter of the job."""

    fingerprint: str
    error_context: dict[str, Any]
    resolution: str | None
    resolved_at: datetime | None
    resolved_by: str | None
    resolve_reason: str | None
    successor_job_id: UUID | None


class JobSchedule(_StoredRow):
    """The schedule that enqueued the job."""

    schedule_id: UUID
    name: str


class JobRelative(_StoredRow):
    """Another job and its relation to this one: `parent`, `child`, `replay_of` or `replayed_by`."""

    relation: str
    depth: int
    """The number of replays between the two."""
    job_id: UUID
    job_type: str
    subject_id: str | None
    created_at: datetime
    status: Status
    outcome: Outcome


class JobRecord(_StoredRow):
    """What is stored of a job beside its snapshot."""

    scheduled_for: datetime | None
    parent_id: UUID | None
    payload: dict[str, Any]
    """Empty if it is stored as a blob."""
    schedule: JobSchedule | None
    dead_letter: JobDeadLetter | None
    log_lines: tuple[JobLogLine, ...]
    """The last lines, attempt by attempt."""
    refusals: tuple[Refusal, ...]
    partial_results: tuple[PartialResultRow, ...]
    """The last ones; with the values of those that are compared."""


class ChangeMarker(NamedTuple):
    """The values that change whenever the detail of a job does."""

    subject_id: str | None
    event_seq: int
    last_log_line: list[int] | None
    """The attempt and the number of the last line."""
    refusals: int


async def read_change_marker(database: Database, org_id: UUID, job_id: UUID) -> ChangeMarker | None:
    """Return the change marker of a job in one round trip; None if the org has no such job."""
    values: dict[str, UUID | int] = {
        "org_id": org_id,
        "job_id": job_id,
        "refused": REFUSED_LINE_SEQ,
        "attempts": _MAX_ATTEMPTS,
    }
    found = await database.tenant_statement(org_id, statement("job_detail/read_change_marker"), values)
    return ChangeMarker(*found[0]) if found else None


async def read_job_record(
    conn: Connection, org_id: UUID, job_id: UUID, *, compared: Sequence[int]
) -> tuple[JobSnapshot, JobRecord, list[JobEvent]] | None:
    """Return a job, its record and its events; None if the org has no such job."""
    values = {"org_id": org_id, "job_id": job_id, "compared": list(compared), **_LIMITS}
    row = await first(conn, "job_detail/read", values)
    if row is None:
        return None
    events = [JobEvent.model_validate(_event_fields(event)) for event in row["events"]]
    return JobSnapshot.model_validate(row), JobRecord.model_validate(row), events


async def list_relatives(
    conn: Connection, job: JobSnapshot, record: JobRecord, now: datetime
) -> list[JobRelative]:
    """Return the jobs around a job. Children are searched among the jobs created while it ran."""
    values = {
        "org_id": job.org_id,
        "job_id": job.job_id,
        "replay_of": job.replay_of,
        "parent_id": record.parent_id,
        "first_child": max(job.job_id, min_id_at((job.started_at or now) - _MAX_CLOCK_SKEW)),
        "last_child": min_id_at((job.finished_at or now) + _MAX_CLOCK_SKEW),
    }
    found = await rows(conn, "job_detail/list_relatives", values | _RELATIVE_LIMITS)
    return [JobRelative.model_validate(row) for row in found]


async def list_last_events(conn: Connection, org_id: UUID, job_id: UUID, *, limit: int) -> list[JobEvent]:
    """Return the last events of a job, oldest first."""
    found = await rows(conn, "events/read_last", {"org_id": org_id, "job_id": job_id, "limit": limit})
    return [JobEvent.model_validate(row) for row in reversed(found)]


async def list_last_attempts(conn: Connection, org_id: UUID, job_id: UUID, *, limit: int) -> list[Attempt]:
    """Return the last attempts of a job, oldest first."""
    values = {"org_id": org_id, "job_id": job_id, "limit": limit}
    found = await rows(conn, "job_detail/list_attempts", values)
    return [Attempt.model_validate(row) for row in reversed(found)]


async def read_conditions(conn: Connection, org_id: UUID, job_id: UUID) -> JobConditions | None:
    """Return the conditions of a job's next step; None if there is no such job."""
    values = {"org_id": org_id, "job_id": job_id, "limit": MAX_JOBS_AHEAD}
    row = await first(conn, "job_detail/read_conditions", values)
    return None if row is None else JobConditions.model_validate(row)


def _event_fields(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "event_id": f"{row['job_id']}:{row['event_seq']}", "payload_json": row["payload"] or {}}
