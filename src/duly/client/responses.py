"""Responses of the service, parsed leniently: it may be newer or older than the client.

Unknown fields are available as attributes, unknown values of an enumeration stay plain text, and fields that
an older service does not send have a default.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Annotated, Any, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, create_model

from duly.core.freshness import Freshness, FreshnessLabel
from duly.core.states import TERMINAL, TERMINAL_EVENT, Outcome, Status

E = TypeVar("E", bound=str)
OpenEnum = Annotated[E | str, Field(union_mode="left_to_right")]
_TERMINAL_EVENTS = frozenset(TERMINAL_EVENT.values())


class LenientModel(BaseModel):
    """The base of responses; unknown fields are available as attributes."""

    model_config = ConfigDict(extra="allow", frozen=True)


class AcceptedJob(LenientModel):
    """An accepted job."""

    job_id: UUID


class CreatedSubscription(LenientModel):
    """A subscription to the outcome of a job."""

    subscription_id: UUID


class StoredBlob(LenientModel):
    """An uploaded file."""

    blob: str


class RemoteFreshness(LenientModel):
    """Whether the status of a job is up to date, as far as the service knows."""

    state: OpenEnum[Freshness]
    shown: OpenEnum[FreshnessLabel]
    evaluated_at: datetime | None = None


class JobStatus(LenientModel):
    """The status of a job."""

    job_id: UUID
    status: OpenEnum[Status]
    outcome: OpenEnum[Outcome] = Outcome.PENDING
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
    """When the job ended, in any status."""
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
    """The permalink of the result, once there is one."""
    freshness: RemoteFreshness | None = None
    reconciled: bool = False
    reconciliations: list[dict[str, Any]] = []

    @property
    def terminal(self) -> bool:
        """Whether the job has ended; False for a status that this client does not know."""
        return self.status in TERMINAL

    @property
    def stage(self) -> tuple[object, ...]:
        """The fields whose change is progress."""
        return self.status, self.attempt, self.progress_percent, self.partial_count


class RemoteEvent(LenientModel):
    """An event of a job."""

    event_seq: int
    event_type: str
    status: OpenEnum[Status]
    event_id: str | None = None
    job_id: UUID | None = None
    attempt: int = 0
    occurred_at: datetime | None = None
    actor_type: str | None = None
    payload: dict[str, Any] = {}

    @property
    def last(self) -> bool:
        """Whether the job ended with this event."""
        return self.event_type in _TERMINAL_EVENTS


class RemoteLogLine(LenientModel):
    """A line that the handler of a job logged."""

    attempt: int
    line_seq: int
    level: str
    message: str
    logged_at: datetime | None = None
    fields: dict[str, Any] = {}


class RemoteSnapshot(LenientModel):
    """A partial result, or the final one."""

    seq: int
    kind: str
    chunk_key: str | None = None
    created_at: datetime | None = None
    value: Any = None


class RemoteResult(LenientModel):
    """A result under its permalink."""

    result_id: UUID
    job_id: UUID
    status: OpenEnum[Status]
    outcome: OpenEnum[Outcome] = Outcome.PENDING
    job_type: str = ""
    subject_id: str | None = None
    snapshot: RemoteSnapshot | None = None
    latest_seq: int = 0
    expires_at: datetime | None = None


class RemoteArtifact(LenientModel):
    """A file that a job stored."""

    name: str
    content_type: str = "application/octet-stream"
    sha256: str | None = None
    size: int | None = None


@cache
def page_of(items: str, item: type[BaseModel]) -> type[Any]:
    """Return the model of a page: its items, and the cursor of the next page."""
    fields: dict[str, Any] = {items: (list[item], ...), "after": (Any, None)}  # type: ignore[valid-type]
    return create_model(f"a page of {items}", __base__=LenientModel, **fields)
