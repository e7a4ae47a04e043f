"""Statuses, outcomes, events and the table of legal transitions."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType


class Status(StrEnum):
    """The status of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    PARTIAL = "partial"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def terminal(self) -> bool:
        """Whether a job in this status never changes again."""
        return self in TERMINAL


class Outcome(StrEnum):
    """How a job ended, or `pending` while it is active."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    PARTIALLY_SUCCEEDED = "partially_succeeded"
    FAILED = "failed"
    BLOCKED = "blocked"
    DEAD = "dead"
    CANCELED = "canceled"


class Trigger(StrEnum):
    """The cause of a transition from one status to the next."""

    ENQUEUE = "enqueue"
    CLAIM = "claim"
    CHUNK = "chunk"
    FINISH = "finish"
    FAIL = "fail"
    RETRY = "retry"
    GIVE_BACK = "give_back"
    LOSE_LEASE = "lose_lease"
    CANCEL = "cancel"
    RECONCILE = "reconcile"


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELED})
HELD = frozenset({Status.RUNNING, Status.PARTIAL})
"""The statuses in which a worker holds the job."""

_FROM_HELD = {
    Trigger.FINISH: Status.COMPLETED,
    Trigger.FAIL: Status.FAILED,
    Trigger.RETRY: Status.QUEUED,
    Trigger.GIVE_BACK: Status.QUEUED,
    Trigger.LOSE_LEASE: Status.QUEUED,
    Trigger.CANCEL: Status.CANCELED,
    Trigger.CHUNK: Status.PARTIAL,
}

TRANSITIONS: MappingProxyType[tuple[Status | None, Trigger], Status] = MappingProxyType(
    {
        (None, Trigger.ENQUEUE): Status.QUEUED,
        (Status.QUEUED, Trigger.CLAIM): Status.RUNNING,
        (Status.QUEUED, Trigger.CANCEL): Status.CANCELED,
        (Status.QUEUED, Trigger.RECONCILE): Status.FAILED,
        **{
            (held, trigger): to
            for held in (Status.RUNNING, Status.PARTIAL)
            for trigger, to in _FROM_HELD.items()
        },
    }
)
"""Every legal transition; no statement performs any other."""

OUTCOMES: MappingProxyType[Status, frozenset[Outcome]] = MappingProxyType(
    {
        Status.QUEUED: frozenset({Outcome.PENDING}),
        Status.RUNNING: frozenset({Outcome.PENDING}),
        Status.PARTIAL: frozenset({Outcome.PENDING}),
        Status.COMPLETED: frozenset({Outcome.SUCCEEDED, Outcome.PARTIALLY_SUCCEEDED}),
        Status.FAILED: frozenset({Outcome.FAILED, Outcome.BLOCKED, Outcome.DEAD}),
        Status.CANCELED: frozenset({Outcome.CANCELED}),
    }
)


def sources(trigger: Trigger) -> frozenset[Status | None]:
    """Return the statuses from which a trigger is legal."""
    return frozenset(status for status, known in TRANSITIONS if known is trigger)


def state_diagram() -> str:
    """Return a Mermaid state diagram of every legal transition."""
    steps: dict[tuple[str, str], list[str]] = {}
    for (source, trigger), target in TRANSITIONS.items():
        steps.setdefault((source or "[*]", target), []).append(trigger.value)
    lines = [
        f"    {source} --> {target}: {', '.join(triggers)}" for (source, target), triggers in steps.items()
    ]
    ends = [f"    {status} --> [*]" for status in sorted(TERMINAL)]
    return "\n".join(["stateDiagram-v2", *lines, *ends])


class EventType(StrEnum):
    """The type of an event; every change of a job writes one in its transaction."""

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
"""Events that have another name in the audit trail."""

AUDITED = frozenset(EventType) - {EventType.PROGRESSED, EventType.PARTIAL}
"""Events that are audited: all but progress and partial results."""

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


def audit_event_name(event: EventType) -> str:
    """Return the name of an event in the audit trail."""
    return AUDIT_NAMES.get(event, event.value)
