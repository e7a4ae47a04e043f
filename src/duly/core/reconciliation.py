"""The record of a repair by the reconciler: the finding, its reason and its evidence."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ConfigDict


class ReasonCode(StrEnum):
    """The reason for which the reconciler ended a job."""

    STALE_QUEUED = "run.stale_queued"
    STALE_RUNNING = "run.stale_running"
    INFRASTRUCTURE = "run.infrastructure_timeout_or_abandonment"
    FAILURE_BRIDGE = "run.queue_failure_bridge"
    ADAPTER_OUT_OF_SYNC = "run.adapter_out_of_sync"
    CANCELED = "run.canceled"


class ReconciliationKind(StrEnum):
    """The kind of a finding."""

    STALE_QUEUED = "stale_queued"
    STALE_RUNNING = "stale_running"
    LOST_LEASE = "lost_lease"
    QUEUE_FAILURE_BRIDGE = "queue_failure_bridge"
    ADAPTER_SYNC = "adapter_sync"


class ReconciliationSource(StrEnum):
    """The component that made the finding."""

    FAILED_CALLBACK = "failed_callback"
    SCHEDULED_RECONCILER = "scheduled_reconciler"
    ADAPTER_RECONCILER = "adapter_reconciler"


REASONS: MappingProxyType[ReconciliationKind, tuple[ReasonCode, str]] = MappingProxyType(
    {
        ReconciliationKind.STALE_QUEUED: (
            ReasonCode.STALE_QUEUED,
            "no worker claimed the job within queued_stale_after",
        ),
        ReconciliationKind.STALE_RUNNING: (
            ReasonCode.STALE_RUNNING,
            "its attempt ran for longer than running_stale_after",
        ),
        ReconciliationKind.LOST_LEASE: (
            ReasonCode.INFRASTRUCTURE,
            "its worker stopped sending heartbeats",
        ),
        ReconciliationKind.QUEUE_FAILURE_BRIDGE: (
            ReasonCode.FAILURE_BRIDGE,
            "the job was queued, but no queue contained it",
        ),
        ReconciliationKind.ADAPTER_SYNC: (
            ReasonCode.ADAPTER_OUT_OF_SYNC,
            "the domain record of the job had already ended",
        ),
    }
)
"""The reason code and the default message of each kind."""


class ReconciliationRecord(BaseModel):
    """One repair, as it is stored with its job."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: ReconciliationKind
    reason_code: ReasonCode
    message: str
    evidence: dict[str, Any]
    source: ReconciliationSource
    at: datetime
    status: str | None = None
    """The status of the job afterwards; set by the statement that writes the record."""

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
        """Return a record of this kind, with the default message of the kind unless one is given."""
        code, default = REASONS[kind]
        return cls(
            kind=kind, reason_code=code, message=message or default, evidence=evidence, source=source, at=at
        )
