"""A job as it is asked for, and as it is seen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.model.policy import JobPolicy
from duly.model.reconciliation import ReconciliationRecord
from duly.model.states import Outcome, Status


class ActorType(StrEnum):
    """Who can ask for work."""

    USER = "user"
    API_KEY = "api_key"
    SYSTEM = "system"
    WORKER = "worker"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asked."""

    type: ActorType
    id: str

    @classmethod
    def user(cls, user_id: object) -> Self:
        """A person, by the id your product knows them by."""
        return cls(ActorType.USER, str(user_id))

    @classmethod
    def api_key(cls, key_id: str) -> Self:
        """A program that holds a key."""
        return cls(ActorType.API_KEY, key_id)

    @classmethod
    def operator(cls, name: str) -> Self:
        """Somebody who looks after the installation."""
        return cls(ActorType.OPERATOR, name)

    @classmethod
    def system(cls, name: str) -> Self:
        """Your own software, acting by itself."""
        return cls(ActorType.SYSTEM, name)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a job comes from: the fields of the contract that the surroundings supply."""

    org_id: UUID
    actor: Actor
    request_id: str
    correlation_id: str
    project_id: UUID | None = None
    traceparent: str | None = None
    parent_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One job to be written: the whole contract, resolved."""

    job_id: UUID
    result_id: UUID
    job_type: str
    origin: Origin
    policy: JobPolicy
    payload: str
    """JSON; `{}` when the payload lies in the blob store."""
    payload_ref: str | None = None
    payload_hash: str | None = None
    subject_id: str | None = None
    scheduled_for: datetime | None = None
    idempotency_key: str | None = None
    run_identity_hash: str | None = None
    metadata: dict[str, Any] | None = None


class JobSnapshot(BaseModel):
    """One job as it is now: the row of the `jobs` view that callers see."""

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
    """What was put right by others than its worker, the oldest first."""

    @property
    def reconciled(self) -> bool:
        """Whether it was not its worker who ended it."""
        return any(record.status == self.status for record in self.reconciliations if self.status.terminal)


class JobEvent(BaseModel):
    """One fact of a job's history."""

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
