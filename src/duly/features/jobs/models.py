"""Responses about jobs, as the OpenAPI document describes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field
from pydantic_core import to_json

from duly.core.freshness import Assessment
from duly.core.job import JobEvent, JobSnapshot
from duly.core.states import Status
from duly.http.params import StrictModel
from duly.http.requester import Requester
from duly.http.responses import ResponseModel, list_model, page_model, response_model
from duly.jobs.status_batcher import JobStatusReading

API_PREFIX = "/v1"
"""The prefix of the routes about jobs of all types."""


class CancelRequest(StrictModel):
    """The reason of a cancellation."""

    reason: str = Field(default="canceled by request", min_length=1, max_length=500)


class Accepted(BaseModel):
    """An accepted job, and the URLs of its status and events."""

    job_id: UUID
    subject_id: str | None
    status: Status
    status_url: str
    events_url: str


FreshnessResponse = response_model(
    Assessment, "FreshnessAssessment", include=("state", "shown", "evaluated_at")
)
JobStatus = response_model(
    JobSnapshot,
    "JobStatus",
    exclude={
        *("org_id", "category", "actor_type", "actor_id", "traceparent", "idempotency_key"),
        *("run_identity_hash", "request_payload_hash", "request_payload_ref", "failure_summary"),
        *("attempt_started_at", "finished_at", "canceled_at", "failed_at"),
    },
    completed_at=(datetime | None, "When the job ended, in any status."),
    result_id=(UUID | None, "The permalink of the result, once there is one."),
    result_url=str | None,
    status_url=str,
    events_url=str,
    freshness=FreshnessResponse,
    reconciled=bool,
)
CurrentJobStatus = response_model(
    JobStatus,
    "CurrentJobStatus",
    event_seq=(int, "The number of the last event."),
    result_seq=(int, "The number of the latest snapshot; 0 if there is none."),
)
JobPage = page_model("jobs", JobStatus, "JobPage")
EVENT_FIELDS: Any = {"actor_type": str, "payload": dict[str, Any]}
"""The fields of an event that differ in responses."""
EventResponse = response_model(JobEvent, "Event", exclude=("actor_id", "payload_json"), **EVENT_FIELDS)
EventPage = list_model("events", EventResponse, "EventPage", after=(int, "The number of the last event."))
_UNCHANGED_FIELDS = set(JobStatus.model_fields) & set(JobSnapshot.model_fields) - {"result_id"}


def event_response(event: JobEvent) -> Any:
    """Return the response of an event, without validating it again."""
    return EventResponse.model_construct(**dict(event), payload=event.payload_json)


def job_status(
    requester: Requester, job: JobSnapshot, freshness: Assessment, prefix: str = API_PREFIX
) -> ResponseModel:
    """Return the response of a job in lists."""
    return JobStatus.model_construct(
        **_status_fields(requester, job, prefix),
        freshness=FreshnessResponse.model_construct(**_freshness_fields(freshness)),
    )


def current_job_status(requester: Requester, reading: JobStatusReading, prefix: str = API_PREFIX) -> bytes:
    """Return a job as the JSON of `CurrentJobStatus`: the most frequent response, so no model is built."""
    fields = _status_fields(requester, reading.job, prefix)
    fields["freshness"] = _freshness_fields(reading.freshness)
    fields["event_seq"], fields["result_seq"] = reading.event_seq, reading.job.latest_result_seq
    return to_json(fields)


def _status_fields(requester: Requester, job: JobSnapshot, prefix: str) -> dict[str, Any]:
    """Return the fields of a status; they were validated when the row was read."""
    has_result = job.partial_count > 0 or job.status is Status.COMPLETED
    status_url = requester.link(f"{prefix}/jobs/{job.job_id}")
    return {
        **{name: value for name, value in job.__dict__.items() if name in _UNCHANGED_FIELDS},
        "completed_at": job.finished_at,
        "result_id": job.result_id if has_result else None,
        "result_url": requester.link(f"{prefix}/results/{job.result_id}") if has_result else None,
        "status_url": status_url,
        "events_url": f"{status_url}/events",
        "reconciled": job.reconciled,
    }


def _freshness_fields(freshness: Assessment) -> dict[str, Any]:
    return {name: getattr(freshness, name) for name in FreshnessResponse.model_fields}
