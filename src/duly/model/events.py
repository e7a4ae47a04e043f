"""The facts a job leaves behind, and the names under which they are published."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType

from duly.model.states import Status


class EventType(StrEnum):
    """One per change of a job, written in the transaction of the change."""

    QUEUED = "job.queued"
    STARTED = "job.started"
    PROGRESSED = "job.progressed"
    PARTIAL = "job.partial"
    RETRIED = "job.retried"
    SNOOZED = "job.snoozed"
    COMPLETED = "job.completed"
    FAILED = "job.failed"
    DEADLETTERED = "job.deadlettered"
    CANCEL_REQUESTED = "job.cancel_requested"
    CANCELED = "job.canceled"
    LEASE_LOST = "job.lease_lost"
    RECONCILED = "job.reconciled"
    REPLAYED = "job.replayed"


TERMINAL_EVENT: MappingProxyType[Status, EventType] = MappingProxyType(
    {
        Status.COMPLETED: EventType.COMPLETED,
        Status.FAILED: EventType.FAILED,
        Status.CANCELED: EventType.CANCELED,
    }
)
"""The last event of a job that ended in this status."""

AUDIT_NAMES: MappingProxyType[EventType, str] = MappingProxyType(
    {EventType.QUEUED: "job.enqueued", EventType.COMPLETED: "job.succeeded"}
)
"""Where the audit trail calls a fact by another name."""

AUDITED = frozenset(EventType) - {EventType.PROGRESSED, EventType.PARTIAL}
"""The facts that an audit asks for: what became of a job, not how far it is."""

_ON_THE_BUS = (
    EventType.QUEUED,
    EventType.STARTED,
    EventType.PARTIAL,
    EventType.COMPLETED,
    EventType.FAILED,
    EventType.CANCELED,
)
BUS_NAMES: MappingProxyType[EventType, str] = MappingProxyType({e: f"api.analyze.{e}" for e in _ON_THE_BUS})
"""The names of the analyze application's event bus."""


def audit_name(event: EventType) -> str:
    """The name of this fact in the audit trail."""
    return AUDIT_NAMES.get(event, event.value)
