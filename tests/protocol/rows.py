"""One job as it is stored, and its fenced statements: a write succeeds iff attempt and status match.

The product's own table and decision define the meaning of a write. The model check explores these rows
exhaustively, and the stateful test compares them with the real tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from duly.core.decide import Transition
from duly.core.states import HELD, TRANSITIONS, EventType, Outcome, Status, Trigger


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of the statements. Each can be switched off, to verify that the checker reports it."""

    fence: bool = True
    """A worker's write compares the attempt."""
    status: bool = True
    """A worker's write needs a claimed job."""
    claim_status: bool = True
    """A claim needs a queued job."""
    attempt_in_claim: bool = True
    """The attempt is counted when it begins, not when it has failed."""
    reaper_fence: bool = True
    """The reaper's write compares the attempt that it has read."""
    waiting_fence: bool = True
    """A job fails for the wait that was read, not for a later one."""
    lost_for_good: bool = True
    """A worker that was declared lost does not come back by a heartbeat."""
    cancel_wins: bool = True
    """A cancel requested after the decision wins over a return to the queue."""
    effect_with_finish: bool = True
    """The handler's writes commit with the completion of its job."""
    numbers_what_it_writes: bool = True
    """The counter advances by the written events, not by the decided ones."""
    keeps_partials: bool = True
    """A new attempt continues where the last one was."""


EVERY_RULE = Rules()


class Row(NamedTuple):
    """What the tables contain about one job; `status` is None before the enqueue."""

    status: Status | None = None
    outcome: Outcome = Outcome.PENDING
    attempt: int = 0
    returned: int = 0
    event_seq: int = 0
    errors: int = 0
    partials: int = 0
    finals: int = 0
    progress: float = 0
    cancel: bool = False
    due_at: datetime | None = None
    """The time from which it may be claimed, if in the future: then it is scheduled, otherwise ready."""
    holder: int | None = None

    @property
    def waits_in(self) -> str | None:
        """Return the table with its queue row."""
        if self.status is not Status.QUEUED:
            return None
        return "ready" if self.due_at is None else "scheduled"


class Write(NamedTuple):
    """An accepted write: the row after it, and its events."""

    row: Row
    trigger: Trigger | None
    """None if the status does not change."""
    events: tuple[EventType, ...] = ()
    attempt: int | None = None
    """The attempt that wrote it; None if none did."""


def enqueue(due_at: datetime | None = None) -> Write:
    row = Row(TRANSITIONS[None, Trigger.ENQUEUE], event_seq=1, due_at=due_at)
    return Write(row, Trigger.ENQUEUE, (EventType.QUEUED,))


def claim(row: Row, holder: int, rules: Rules = EVERY_RULE) -> Write | None:
    waits = row.status is Status.QUEUED if rules.claim_status else row.status not in HELD
    if not waits or row.due_at is not None:
        return None
    kept = row if rules.keeps_partials else row._replace(partials=0, progress=0)
    row = kept._replace(
        status=TRANSITIONS[Status.QUEUED, Trigger.CLAIM],
        attempt=row.attempt + rules.attempt_in_claim,
        event_seq=row.event_seq + 1,
        holder=holder,
    )
    return Write(row, Trigger.CLAIM, (EventType.STARTED,))


def settle(row: Row, attempt: int, to: Transition, now: datetime, rules: Rules = EVERY_RULE) -> Write | None:
    if not _ours(row, attempt, rules):
        return None
    trigger, status, outcome, events = to.trigger, to.status, to.outcome, to.events
    if rules.cancel_wins and row.cancel and status is Status.QUEUED:
        trigger, status, outcome = Trigger.CANCEL, Status.CANCELED, Outcome.CANCELED
        lost = EventType.LEASE_LOST
        events = (*((lost,) if lost in events else ()), EventType.CANCELED)
    finished = status is Status.COMPLETED
    after = row._replace(
        status=status,
        outcome=outcome,
        attempt=row.attempt + (not rules.attempt_in_claim and trigger in (Trigger.RETRY, Trigger.FAIL)),
        returned=row.returned + to.gives_back,
        event_seq=row.event_seq + len(events if rules.numbers_what_it_writes else to.events),
        errors=row.errors + (to.error is not None),
        finals=row.finals + finished,
        progress=100 if finished else row.progress,
        due_at=to.run_at if status is Status.QUEUED and to.run_at and to.run_at > now else None,
        holder=None,
    )
    return Write(after, trigger, events, attempt)


def store_chunk(row: Row, attempt: int, percent: float, rules: Rules = EVERY_RULE) -> Write | None:
    if not _ours(row, attempt, rules):
        return None
    after = row._replace(
        status=Status.PARTIAL,
        partials=row.partials + 1,
        event_seq=row.event_seq + 1,
        progress=max(row.progress, percent),
    )
    return Write(after, Trigger.CHUNK, (EventType.PARTIAL,), attempt)


def keep_progress(row: Row, attempt: int, percent: float, rules: Rules = EVERY_RULE) -> Write | None:
    if not _ours(row, attempt, rules) or percent <= row.progress:
        return None
    after = row._replace(progress=percent, event_seq=row.event_seq + 1)
    return Write(after, None, (EventType.PROGRESSED,), attempt)


def cancel(row: Row) -> Write | None:
    """Cancel a queued job, or request it for a claimed one; None if there is nothing to change."""
    if row.status is Status.QUEUED:
        after = row._replace(
            status=TRANSITIONS[Status.QUEUED, Trigger.CANCEL],
            outcome=Outcome.CANCELED,
            cancel=True,
            due_at=None,
            event_seq=row.event_seq + 1,
        )
        return Write(after, Trigger.CANCEL, (EventType.CANCELED,))
    if row.status not in HELD or row.cancel:
        return None
    after = row._replace(cancel=True, event_seq=row.event_seq + 1)
    return Write(after, None, (EventType.CANCEL_REQUESTED,))


def fail_waiting(row: Row, attempt: int, to: Transition, rules: Rules = EVERY_RULE) -> Write | None:
    if row.status is not Status.QUEUED or (rules.waiting_fence and row.attempt != attempt):
        return None
    after = row._replace(
        status=to.status,
        outcome=to.outcome,
        due_at=None,
        errors=row.errors + 1,
        event_seq=row.event_seq + len(to.events),
    )
    return Write(after, to.trigger, to.events, attempt)


def promote(row: Row, now: datetime) -> Row:
    return row._replace(due_at=None) if row.due_at is not None and row.due_at <= now else row


def _ours(row: Row, attempt: int, rules: Rules) -> bool:
    return (not rules.fence or row.attempt == attempt) and (not rules.status or row.status in HELD)
