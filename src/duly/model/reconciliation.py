"""The record of a healing: what was found, what was done about it, and why it may be believed."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ConfigDict


class ReasonCode(StrEnum):
    """Why a job was put right by somebody other than its worker."""

    STALE_QUEUED = "run.stale_queued"
    STALE_RUNNING = "run.stale_running"
    INFRASTRUCTURE = "run.infrastructure_timeout_or_abandonment"
    FAILURE_BRIDGE = "run.queue_failure_bridge"
    ADAPTER_OUT_OF_SYNC = "run.adapter_out_of_sync"
    CANCELED = "run.canceled"


class ReconciliationKind(StrEnum):
    """What was found."""

    STALE_QUEUED = "stale_queued"
    STALE_RUNNING = "stale_running"
    LOST_LEASE = "lost_lease"
    QUEUE_FAILURE_BRIDGE = "queue_failure_bridge"
    ADAPTER_SYNC = "adapter_sync"


class ReconciliationSource(StrEnum):
    """Who found it."""

    FAILED_CALLBACK = "failed_callback"
    SCHEDULED_RECONCILER = "scheduled_reconciler"
    ADAPTER_RECONCILER = "adapter_reconciler"


REASONS: MappingProxyType[ReconciliationKind, tuple[ReasonCode, str]] = MappingProxyType(
    {
        ReconciliationKind.STALE_QUEUED: (
            ReasonCode.STALE_QUEUED,
            "no worker took it within the time its type may wait",
        ),
        ReconciliationKind.STALE_RUNNING: (
            ReasonCode.STALE_RUNNING,
            "its attempt ran for longer than one may be kept alive",
        ),
        ReconciliationKind.LOST_LEASE: (
            ReasonCode.INFRASTRUCTURE,
            "its worker stopped sending heartbeats",
        ),
        ReconciliationKind.QUEUE_FAILURE_BRIDGE: (
            ReasonCode.FAILURE_BRIDGE,
            "it was to wait for a worker, but no queue has it",
        ),
        ReconciliationKind.ADAPTER_SYNC: (
            ReasonCode.ADAPTER_OUT_OF_SYNC,
            "the record it works for is over already",
        ),
    }
)
"""The code and the words of each kind."""


class ReconciliationRecord(BaseModel):
    """One healing, as it is kept with its job."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: ReconciliationKind
    reason_code: ReasonCode
    message: str
    evidence: dict[str, Any]
    source: ReconciliationSource
    at: datetime
    status: str | None = None
    """What the job became; the statement that writes the record says it."""

    @classmethod
    def of(
        cls,
        kind: ReconciliationKind,
        evidence: dict[str, Any],
        at: datetime,
        *,
        message: str | None = None,
        source: ReconciliationSource = ReconciliationSource.SCHEDULED_RECONCILER,
    ) -> ReconciliationRecord:
        """A record of this kind, in its usual words unless there are better ones."""
        code, words = REASONS[kind]
        return cls(
            kind=kind, reason_code=code, message=message or words, evidence=evidence, source=source, at=at
        )
