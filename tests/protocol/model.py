"""The model around the rows: workers that crash, freeze and wake, reapers, clients, lost answers.

A state is one immutable value. Time is whatever may happen next: a lease expires, a wait is over, or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from functools import cache
from typing import NamedTuple

from duly.core.decide import JobState, Transition, decide
from duly.core.outcome import (
    AttemptOutcome,
    Canceled,
    Completed,
    ErrorInfo,
    Failed,
    Lost,
    Reconciled,
    Retried,
    Snoozed,
)
from duly.core.policy import RetryPolicy
from duly.core.reconciliation import ReconciliationKind, ReconciliationRecord
from duly.core.states import Status
from tests.protocol.rows import EVERY_RULE, Row, Rules, Write

NOW = datetime(2026, 1, 1, tzinfo=UTC)
_LATER = timedelta(hours=1)
_CANCEL_REQUEST = Canceled("user", "enough")
_ERROR = ErrorInfo("boom", "it broke")
ENDINGS: dict[str, AttemptOutcome] = {
    "done": Completed({"ok": True}),
    "retry": Retried(_ERROR),
    "failed": Failed(_ERROR),
    "snooze": Snoozed(_LATER),
    "give back": Snoozed(timedelta(0)),
    "canceled": _CANCEL_REQUEST,
    "lost": Lost(),
    "stale": Reconciled(ReconciliationRecord.of(ReconciliationKind.STALE_RUNNING, {}, NOW)),
    "waited": Reconciled(ReconciliationRecord.of(ReconciliationKind.STALE_QUEUED, {}, NOW)),
}
GONE = -1
"""Claims a job under an identity whose process is gone: its lease expires sooner or later."""


class Pulse(IntEnum):
    """A worker as it is, and as the database knows it."""

    BEATING = 0
    ASLEEP = 1
    """Stopped for longer than its lease, and not yet detected."""
    LOST_ASLEEP = 2
    LOST = 3
    """Declared lost and awake again without knowing it: a zombie."""


class Grip(NamedTuple):
    """What a worker knows about its job."""

    job: int
    attempt: int
    returned: int
    status: Status = Status.RUNNING
    cancel: bool = False
    acted: bool = False
    """The effect outside the database has happened."""
    open: bool = False
    """The handler's transaction is open, its effect written and not committed."""
    ending: str = ""
    """The outcome, still to be written."""

    def ended(self, ending: str) -> Grip:
        return self._replace(ending=ending, acted=False, open=False)


class Worker(NamedTuple):
    pulse: Pulse = Pulse.BEATING
    grip: Grip | tuple[()] = ()


class Job(NamedTuple):
    """A row, and facts that only the model knows."""

    row: Row = Row()
    effects: int = 0
    """Committed effects of `ctx.transaction()`."""
    outside: int = 0
    starts: int = 0


class Pending(NamedTuple):
    """A write in progress: of a reaper that has read, or a settlement whose answer is lost."""

    grip: Grip
    effect: bool = False


class World(NamedTuple):
    jobs: tuple[Job, ...]
    workers: tuple[Worker, ...]
    looks: tuple[Pending, ...] = ()
    """What reapers and reconcilers have read and are about to write."""
    flying: tuple[Pending, ...] = ()
    """Settlements that may still arrive after their worker stopped waiting for the answer."""


class Step(NamedTuple):
    label: str
    world: World
    job: int
    write: Write | None = None
    fair: bool = True
    reaper: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """The size of a model, and its possible faults."""

    jobs: int = 1
    workers: int = 2
    max_attempts: int = 2
    give_backs: int = 1
    """How many attempts may be returned; otherwise the model would be infinite."""
    transactional: bool = True
    outside: bool = True
    drains: bool = True
    chunks: int = 1
    progress: bool = False
    crashes: bool = True
    pauses: bool = True
    lost_answers: bool = True
    restarts: bool = True
    reapers: int = 1
    horizons: bool = True
    """Attempts may run, and jobs may wait, for too long."""
    cancels: bool = True
    rules: Rules = EVERY_RULE

    @property
    def first(self) -> World:
        return World((Job(),) * self.jobs, (Worker(),) * self.workers)


@cache
def decided(
    status: Status, attempt: int, returned: int, cancel: bool, ending: str, max_attempts: int
) -> Transition:
    """Call the product's own decision."""
    hold = JobState(status, attempt, returned, _CANCEL_REQUEST if cancel else None)
    policy = RetryPolicy(max_attempts=max_attempts, delays=(_LATER,))
    return decide(hold, ENDINGS[ending], policy, NOW, 0.0)
