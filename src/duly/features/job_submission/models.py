"""Requests that submit jobs, and the responses to them."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import BaseModel, Field

from duly.core.policy import Category
from duly.features.jobs.models import Accepted
from duly.http.params import NUMERIC, StrictModel, Timestamp
from duly.http.responses import ResponseModel, list_model
from duly.jobs.enqueue_options import EnqueueKeywords
from duly.jobs.job import Job


class JobRequest(StrictModel):
    """A job to submit."""

    job_type: str = Field(min_length=1, max_length=200, examples=["analyze.run"])
    payload: dict[str, Any] = Field(default={}, description="The arguments of the job type, by name.")
    subject_id: str | None = Field(
        default=None, min_length=1, max_length=500, description="The thing in your product that it is about."
    )
    project_id: UUID | None = None
    correlation_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="Stored with the job; by default the id of the request.",
    )
    priority: Annotated[int, Field(ge=-1000, le=1000), NUMERIC] | None = None
    expedite: bool = Field(default=False, strict=True)
    critical: bool = Field(default=False, strict=True)
    scheduled_for: Timestamp | None = Field(default=None, description="The earliest start.")
    run_identity: Any = Field(
        default=None, description="Of the jobs with the same identity, one is in flight at a time."
    )
    metadata: dict[str, Any] | None = None

    def enqueue_keywords(self, idempotency_key: str | None) -> EnqueueKeywords:
        """Return the options with which the job is enqueued."""
        options: Any = self.model_dump(
            exclude={"job_type", "payload", "idempotency_key"}, exclude_defaults=True
        )
        return EnqueueKeywords(**options, **({"idempotency_key": idempotency_key} if idempotency_key else {}))


class BulkItem(JobRequest):
    """One of many jobs to submit."""

    idempotency_key: str | None = Field(
        default=None, min_length=1, max_length=255, description="Like the header of a single request."
    )


class BulkRequest(StrictModel):
    """Jobs to submit: all are accepted, or none."""

    jobs: list[BulkItem] = Field(min_length=1, max_length=1_000)


class BulkItemAccepted(Accepted):
    """One of many accepted jobs."""

    replayed: bool = Field(
        description="Whether a job with this idempotency key or run identity existed already."
    )


class BulkAccepted(BaseModel):
    """Accepted jobs, in the order of the request."""

    jobs: list[BulkItemAccepted]


class JobTypeResponse(ResponseModel):
    """A job type and the default policy of its jobs."""

    job_type: str
    category: Category
    queue: str
    max_attempts: int
    timeout: timedelta = Field(description="The seconds that one attempt may take.")
    schedulable: bool = Field(description="Whether jobs may be delayed or scheduled.")
    payload_schema: dict[str, Any] = Field(description="The JSON Schema of the payload.")

    @classmethod
    def of(cls, job: Job[..., Any]) -> Self:
        """Return the response of a job type."""
        return cls(
            job_type=job.name,
            category=job.policy.category,
            queue=job.policy.queue,
            max_attempts=job.policy.retry.max_attempts,
            timeout=job.policy.timeout,
            schedulable=job.policy.schedulable,
            payload_schema=job.codec.schema(),
        )


JobTypeList = list_model("job_types", JobTypeResponse, "JobTypes")
