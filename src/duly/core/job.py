"""The data of a job: actor, origin, specification, snapshot, events and summary counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.core.errors import ContractError
from duly.core.policy import JobPolicy
from duly.core.reconciliation import ReconciliationRecord
from duly.core.states import Outcome, Status


class ActorType(StrEnum):
    """The kind of an actor."""

    USER = "user"
    API_KEY = "api_key"
    SYSTEM = "system"
    WORKER = "worker"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of a request or a change."""

    type: ActorType
    id: str

    @classmethod
    def user(cls, user_id: object) -> Self:
        """Return a person as an actor, by the id that your product knows."""
        return cls(ActorType.USER, str(user_id))

    @classmethod
    def api_key(cls, key_id: str) -> Self:
        """Return an API key as an actor."""
        return cls(ActorType.API_KEY, key_id)

    @classmethod
    def operator(cls, name: str) -> Self:
        """Return an operator of the installation as an actor."""
        return cls(ActorType.OPERATOR, name)

    @classmethod
    def system(cls, name: str) -> Self:
        """Return your own software as an actor."""
        return cls(ActorType.SYSTEM, name)


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a job: the fields that its request context supplies."""

    org_id: UUID
    actor: Actor
    request_id: str
    correlation_id: str
    project_id: UUID | None = None
    traceparent: str | None = None
    parent_id: UUID | None = None


class JobSpec(NamedTuple):
    """A job to enqueue, with its policy resolved."""

    job_id: str
    """As hexadecimal digits, like the id of its result: a UUID would take longer to make than to write."""
    result_id: str
    job_type: str
    origin: Origin
    policy: JobPolicy
    payload: str
    """JSON; `{}` when the payload is stored as the blob `payload_ref`."""
    payload_ref: str | None = None
    payload_hash: str | None = None
    subject_id: str | None = None
    scheduled_for: datetime | None = None
    idempotency_key: str | None = None
    run_identity_hash: str | None = None
    metadata: dict[str, Any] | None = None

    @property
    def has_options(self) -> bool:
        """Whether it has any of the fields that few jobs have."""
        return not (
            self.payload_ref is None
            and self.subject_id is None
            and self.scheduled_for is None
            and self.run_identity_hash is None
            and self.metadata is None
        )


class JobSnapshot(BaseModel):
    """One job at one time: a row of the view `duly.jobs`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    job_id: UUID
    org_id: UUID
    project_id: UUID | None
    subject_id: str | None
    job_type: str
    category: str
    queue: str
    priority: int
    status: Status
    outcome: Outcome
    attempt: int
    max_attempts: int
    progress_percent: float
    partial_count: int
    error_count: int
    result_id: UUID
    actor_type: ActorType
    actor_id: str
    request_id: str
    correlation_id: str
    traceparent: str | None
    idempotency_key: str
    run_identity_hash: str | None
    request_payload_hash: str
    request_payload_ref: str | None
    created_at: datetime
    run_at: datetime
    started_at: datetime | None
    attempt_started_at: datetime | None
    finished_at: datetime | None
    updated_at: datetime
    cancel_requested_at: datetime | None
    canceled_at: datetime | None
    canceled_by: str | None
    cancel_reason: str | None
    failed_at: datetime | None
    retryable: bool | None
    error_code: str | None
    error_class: str | None
    error_message: str | None
    summary_counts: dict[str, float]
    failure_summary: list[dict[str, Any]]
    replay_of: UUID | None
    reconciliations: list[ReconciliationRecord]
    """The repairs by the reconciler, oldest first."""

    @property
    def reconciled(self) -> bool:
        """Whether the reconciler ended the job instead of its worker."""
        return any(record.status == self.status for record in self.reconciliations if self.status.terminal)

    @property
    def latest_result_seq(self) -> int:
        """The number of the latest result, partial or final; 0 without one."""
        return self.partial_count + (self.status is Status.COMPLETED)


class JobEvent(BaseModel):
    """One event of a job."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    event_id: str
    job_id: UUID
    event_seq: int
    event_type: str
    status: Status
    attempt: int
    occurred_at: datetime
    actor_type: ActorType
    actor_id: str
    payload_json: dict[str, Any]


SUMMARY_KEYS = frozenset(
    {
        "total",
        "processed",
        "succeeded",
        "failed",
        "skipped",
        "created",
        "updated",
        "deleted",
        "unchanged",
        "imported",
        "exported",
        "sent",
        "warnings",
        "errors",
        "pages",
        "chunks",
        "bytes",
    }
)
"""The keys of summary counts; others are refused, so that the counts of different jobs can be compared."""


def check_summary_counts(counts: Mapping[str, float]) -> dict[str, float]:
    """Return the counts if each is a finite number under one of `SUMMARY_KEYS`."""
    for key, value in counts.items():
        if key not in SUMMARY_KEYS:
            raise ContractError(
                f"unknown key {key!r}", field="summary_counts", fix=f"use one of {sorted(SUMMARY_KEYS)}"
            )
        if type(value) not in (int, float) or not math.isfinite(value):
            raise ContractError(
                f"{value!r} is not a number", field=f"summary_counts.{key}", fix="pass a finite number"
            )
    return dict(counts)


SYSTEM_ORG = UUID("00000000-0000-7000-8000-00000000d017")
"""The org of Duly's own maintenance jobs, created by the migrations; no tenant reads them."""
DEVELOPMENT_ORG = UUID("00000000-0000-7000-8000-00000000de50")
"""The default org of an application on the embedded database, created when its resources are opened."""
