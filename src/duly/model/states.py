"""Statuses, outcomes and the one table of legal transitions."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType


class Status(StrEnum):
    """Where a job is."""

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
    """What moves a job from one status to the next."""

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
"""Every legal step. What is not in it, no statement may do."""

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
    """The statuses from which a trigger is legal."""
    return frozenset(status for status, known in TRANSITIONS if known is trigger)
