"""What the service answers, read leniently: it may be newer than we are, or older.

Fields that we do not know are kept, and words that we do not know stay plain text.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from duly.model import freshness
from duly.model.events import TERMINAL_EVENT
from duly.model.states import TERMINAL, Outcome, Status

W = TypeVar("W", bound=str)
Word = Annotated[W | str, Field(union_mode="left_to_right")]
_LAST_EVENTS = frozenset(TERMINAL_EVENT.values())


class Lenient(BaseModel):
    """Whatever else the service says is kept."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Accepted(Lenient):
    """A job that was taken."""

    job_id: UUID


class Subscribed(Lenient):
    """Somebody will be told how a job ends."""

    subscription_id: UUID


class BulkAccepted(Lenient):
    """Many of them, in their order."""

    jobs: list[Accepted]


class Freshness(Lenient):
    """Whether a job can still be believed."""

    state: Word[freshness.Freshness]
    shown: Word[freshness.ShownFreshness]
    evaluated_at: datetime | None = None


class JobStatus(Lenient):
    """One job as it is now."""

    job_id: UUID
    status: Word[Status]
    outcome: Word[Outcome] = Outcome.PENDING
    job_type: str = ""
    subject_id: str | None = None
    project_id: UUID | None = None
    correlation_id: str | None = None
    request_id: str | None = None
    queue: str | None = None
    priority: int = 0
    attempt: int = 0
    max_attempts: int | None = None
    progress_percent: float = 0.0
    partial_count: int = 0
    error_count: int = 0
    created_at: datetime | None = None
    run_at: datetime | None = None
    started_at: datetime | None = None
    updated_at: datetime | None = None
    completed_at: datetime | None = None
    """When it ended, however it ended."""
    cancel_requested_at: datetime | None = None
    canceled_by: str | None = None
    cancel_reason: str | None = None
    retryable: bool | None = None
    error_code: str | None = None
    error_class: str | None = None
    error_message: str | None = None
    summary_counts: dict[str, float] = {}
    replay_of: UUID | None = None
    result_id: UUID | None = None
    """The permalink of its result, once there is one."""
    freshness: Freshness | None = None
    reconciled: bool = False
    reconciliations: list[dict[str, Any]] = []

    @property
    def terminal(self) -> bool:
        """Whether it has ended. Of a status that we do not know, nobody can say so."""
        return self.status in TERMINAL

    @property
    def stage(self) -> tuple[object, ...]:
        """What people watch: a change of it is news."""
        return self.status, self.attempt, self.progress_percent, self.partial_count


class JobPage(Lenient):
    """Some jobs; `after` asks for those that follow."""

    jobs: list[JobStatus]
    after: str | None = None


class Event(Lenient):
    """One fact of a job's history."""

    event_seq: int
    event_type: str
    status: Word[Status]
    event_id: str | None = None
    job_id: UUID | None = None
    attempt: int = 0
    occurred_at: datetime | None = None
    actor_type: str | None = None
    payload: dict[str, Any] = {}

    @property
    def last(self) -> bool:
        """Whether it is the end of the job, after which nothing follows."""
        return self.event_type in _LAST_EVENTS


class EventPage(Lenient):
    """Some events in their order."""

    events: list[Event]


class LogLine(Lenient):
    """One line that the handler of a job has logged."""

    attempt: int
    line_seq: int
    level: str
    message: str
    logged_at: datetime | None = None
    fields: dict[str, Any] = {}


class LogPage(Lenient):
    """Some lines in their order; none are left if it is empty."""

    lines: list[LogLine]
    after: str | None = None


class Snapshot(Lenient):
    """One partial result, or the final one."""

    seq: int
    kind: str
    chunk_key: str | None = None
    created_at: datetime | None = None
    value: Any = None


class Result(Lenient):
    """What is kept under a permalink."""

    result_id: UUID
    job_id: UUID
    status: Word[Status]
    outcome: Word[Outcome] = Outcome.PENDING
    job_type: str = ""
    subject_id: str | None = None
    snapshot: Snapshot | None = None
    latest_seq: int = 0
    expires_at: datetime | None = None


class SnapshotPage(Lenient):
    """Some snapshots in their order."""

    snapshots: list[Snapshot]
    after: int = 0


class Blob(Lenient):
    """Bytes that are kept."""

    blob: str


class Artifact(Lenient):
    """A file that a job has left."""

    name: str
    content_type: str = "application/octet-stream"
    sha256: str | None = None
    size: int | None = None


class Artifacts(Lenient):
    """The files of a job, by name."""

    artifacts: list[Artifact]
