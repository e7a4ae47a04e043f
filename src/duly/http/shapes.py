"""What the routes about jobs take and give, as the OpenAPI document describes it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from duly.client.options import Choices
from duly.control.jobs import Glance
from duly.http.caller import Caller
from duly.http.values import NUMERIC, Moment
from duly.model.freshness import Assessment, Freshness, ShownFreshness
from duly.model.job import JobEvent, JobSnapshot
from duly.model.reconciliation import ReconciliationRecord
from duly.model.states import Outcome, Status

ROOM = "/v1"
"""Below which the routes about all kinds of jobs are."""


class Strict(BaseModel):
    """What callers send: unknown fields are named, not ignored."""

    model_config = ConfigDict(extra="forbid")


class JobRequest(Strict):
    """A job to be done."""

    job_type: str = Field(min_length=1, max_length=200, examples=["analyze.run"])
    payload: dict[str, Any] = Field(default={}, description="The arguments of the job type, by name.")
    subject_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="What it is about, in the words of the product.",
    )
    project_id: UUID | None = None
    correlation_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="Kept with the job; else the request's own id.",
    )
    priority: Annotated[int, Field(ge=-1000, le=1000), NUMERIC] | None = None
    expedite: bool = Field(default=False, strict=True)
    critical: bool = Field(default=False, strict=True)
    scheduled_for: Moment | None = Field(default=None, description="Not before then.")
    run_identity: Any = Field(default=None, description="Of jobs with the same, one is in flight at a time.")
    metadata: dict[str, Any] | None = None

    def choices(self, idempotency_key: str | None) -> Choices:
        """What is said beyond the payload."""
        said: Any = self.model_dump(exclude={"job_type", "payload", "idempotency_key"}, exclude_defaults=True)
        return Choices(**said, **({"idempotency_key": idempotency_key} if idempotency_key else {}))


class BulkItem(JobRequest):
    """One of many jobs."""

    idempotency_key: str | None = Field(
        default=None, min_length=1, max_length=255, description="As the header of a single request."
    )


class BulkRequest(Strict):
    """Jobs to be done: all are accepted, or none."""

    jobs: list[BulkItem] = Field(min_length=1, max_length=1_000)


class Accepted(BaseModel):
    """The answer to every request that enqueues."""

    job_id: UUID
    subject_id: str | None
    status: Status
    status_url: str
    events_url: str


class BulkItemAccepted(Accepted):
    """One of many."""

    replayed: bool = Field(description="Whether its key, its payload or its run had a job already.")


class BulkAccepted(BaseModel):
    """The answer to many, in their order."""

    jobs: list[BulkItemAccepted]


class FreshnessShown(BaseModel):
    """Whether a job can still be believed."""

    state: Freshness
    shown: ShownFreshness
    evaluated_at: datetime

    @classmethod
    def of(cls, assessment: Assessment) -> FreshnessShown:
        """As it is shown."""
        return cls.model_construct(
            state=assessment.state, shown=assessment.shown, evaluated_at=assessment.evaluated_at
        )


class JobStatus(BaseModel):
    """One job as it is now."""

    job_id: UUID
    job_type: str
    subject_id: str | None
    project_id: UUID | None
    correlation_id: str
    request_id: str
    queue: str
    priority: int
    status: Status
    outcome: Outcome
    attempt: int
    max_attempts: int
    progress_percent: float
    partial_count: int
    error_count: int
    created_at: datetime
    run_at: datetime
    started_at: datetime | None
    updated_at: datetime
    completed_at: datetime | None = Field(description="When it ended, however it ended.")
    cancel_requested_at: datetime | None
    canceled_by: str | None
    cancel_reason: str | None
    retryable: bool | None
    error_code: str | None
    error_class: str | None
    error_message: str | None
    summary_counts: dict[str, float]
    replay_of: UUID | None
    result_id: UUID | None = Field(description="The permalink of its result, once there is one.")
    result_url: str | None
    status_url: str
    events_url: str
    freshness: FreshnessShown
    reconciled: bool
    reconciliations: list[ReconciliationRecord]


class JobStatusNow(JobStatus):
    """One job as it is now, and how far its events and results are."""

    event_seq: int = Field(description="The number of its last event.")
    result_seq: int = Field(description="The number of its latest snapshot; 0 if there is none.")


class JobPageShown(BaseModel):
    """Some jobs; `after` asks for those that follow, and is null at the end."""

    jobs: list[JobStatus]
    after: str | None


class EventShown(BaseModel):
    """One fact of a job's history."""

    event_id: str
    job_id: UUID
    event_seq: int
    event_type: str
    status: Status
    attempt: int
    occurred_at: datetime
    actor_type: str
    payload: dict[str, Any]

    @classmethod
    def of(cls, event: JobEvent) -> EventShown:
        """As it is shown."""
        said = {name: value for name, value in event.__dict__.items() if name in cls.model_fields}
        return cls.model_construct(**said, payload=event.payload_json)


class EventPage(BaseModel):
    """Some events in their order; `after` asks for those that follow."""

    events: list[EventShown]
    after: int


class CancelRequest(Strict):
    """Why it is to end, if there is something to say."""

    reason: str = Field(default="asked for", min_length=1, max_length=500)


def shown(who: Caller, job: JobSnapshot, freshness: Assessment, room: str = ROOM) -> JobStatus:
    """A job as it is shown in lists."""
    return JobStatus.model_construct(**_said(who, job, room), freshness=FreshnessShown.of(freshness))


def shown_now(who: Caller, seen: Glance, room: str = ROOM) -> bytes:
    """A job as it is shown by itself, as the JSON of a `JobStatusNow`: this is asked for most of all."""
    judged, said = seen.freshness, _said(who, seen.job, room)
    said["freshness"] = {"state": judged.state, "shown": judged.shown, "evaluated_at": judged.evaluated_at}
    said["event_seq"], said["result_seq"] = seen.event_seq, seen.latest_result_seq or 0
    return to_json(said)


def _said(who: Caller, job: JobSnapshot, room: str) -> dict[str, Any]:
    """What is read was checked when it was written; it is not checked again."""
    has_result = job.partial_count > 0 or job.status is Status.COMPLETED
    place = who.link(f"{room}/jobs/{job.job_id}")
    return {
        **{name: value for name, value in job.__dict__.items() if name in _SAME},
        "completed_at": job.finished_at,
        "result_id": job.result_id if has_result else None,
        "result_url": who.link(f"{room}/results/{job.result_id}") if has_result else None,
        "status_url": place,
        "events_url": f"{place}/events",
        "reconciled": job.reconciled,
    }


_SAME = set(JobStatus.model_fields) & set(JobSnapshot.model_fields) - {"result_id"}
