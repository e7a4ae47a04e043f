"""The one decision: what an attempt's ending means for its job."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from duly.model.events import EventType
from duly.model.outcome import (
    Canceled,
    CanceledBy,
    Done,
    Ending,
    ErrorInfo,
    Failed,
    Lost,
    Overruled,
    Retry,
    Snooze,
)
from duly.model.policy import RetryPolicy
from duly.model.reconciliation import ReconciliationRecord
from duly.model.states import TRANSITIONS, Outcome, Status, Trigger

LONGEST_WAIT = timedelta(days=3650)
"""Whatever a handler or a provider asks for, beyond this a wait is no wait."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A job as the worker that claimed it holds it, or as it waits."""

    status: Status
    attempt: int
    """The fence: grows with every claim, never falls."""
    returned: int = 0
    """How many of these attempts were given back and do not count."""
    cancel_requested: Canceled | None = None

    @property
    def spent(self) -> int:
        """The attempts that count against the policy's maximum."""
        return self.attempt - self.returned


@dataclass(frozen=True, slots=True)
class Transition:
    """What is to be written; the store applies it only where the fence still holds."""

    trigger: Trigger
    status: Status
    outcome: Outcome
    events: tuple[EventType, ...]
    run_at: datetime | None = None
    gives_back: bool = False
    error: ErrorInfo | None = None
    retryable: bool | None = None
    canceled_by: CanceledBy | None = None
    cancel_reason: str | None = None
    done: Done | None = None
    detail: dict[str, Any] | None = None
    """What the events tell beyond the error."""
    summary_counts: dict[str, float] = field(default_factory=dict)
    failure_summary: tuple[dict[str, Any], ...] = ()
    record: ReconciliationRecord | None = None
    """What was found, if it was not the worker who ended it."""


def decide(hold: Hold, ending: Ending, policy: RetryPolicy, now: datetime, chance: float) -> Transition:
    """Turn an ending into the transition of its job. Pure: the clock and the dice are arguments."""
    match ending:
        case Done():
            return finish(hold, ending)
        case Failed(error, blocked):
            outcome = Outcome.BLOCKED if blocked else Outcome.FAILED
            return _fail(hold, error, outcome, EventType.FAILED)
        case Canceled():
            return _cancel(hold, ending)
        case _ if hold.cancel_requested is not None:
            return _cancel(hold, hold.cancel_requested, ending)
        case Overruled(record):
            return _overrule(hold, record)
        case Snooze(delay, reason):
            run_at = _after(now, delay)
            return _requeue(hold, Trigger.GIVE_BACK, EventType.SNOOZED, run_at, reason=reason)
        case Retry(error, after):
            wait = max(policy.delay(hold.spent, chance), after or timedelta(0))
            return _again(hold, Trigger.RETRY, error, policy, _after(now, wait))
        case Lost(reason, record):
            lost = _again(hold, Trigger.LOSE_LEASE, ErrorInfo("lease_lost", reason), policy, now)
            return replace(lost, record=record)


def finish(hold: Hold, done: Done) -> Transition:
    """The transition of a finished job; it needs neither clock nor dice."""
    outcome = Outcome.PARTIALLY_SUCCEEDED if done.partially else Outcome.SUCCEEDED
    return Transition(
        Trigger.FINISH,
        _to(hold, Trigger.FINISH),
        outcome,
        (EventType.COMPLETED,),
        done=done,
        summary_counts=done.summary_counts,
        failure_summary=done.failure_summary,
    )


def _fail(hold: Hold, error: ErrorInfo, outcome: Outcome, *events: EventType) -> Transition:
    status = _to(hold, Trigger.FAIL)
    return Transition(Trigger.FAIL, status, outcome, events, error=error, retryable=outcome is Outcome.DEAD)


def _overrule(hold: Hold, record: ReconciliationRecord) -> Transition:
    trigger = Trigger.RECONCILE if hold.status is Status.QUEUED else Trigger.FAIL
    return Transition(
        trigger,
        _to(hold, trigger),
        Outcome.FAILED,
        (EventType.RECONCILED, EventType.FAILED),
        error=ErrorInfo(record.reason_code, record.message),
        retryable=True,
        record=record,
    )


_TOLD_BEFORE = {Lost: (EventType.LEASE_LOST,), Overruled: (EventType.RECONCILED,)}


def _cancel(hold: Hold, request: Canceled, ending: Ending | None = None) -> Transition:
    return Transition(
        Trigger.CANCEL,
        _to(hold, Trigger.CANCEL),
        Outcome.CANCELED,
        (*_TOLD_BEFORE.get(type(ending), ()), EventType.CANCELED),
        canceled_by=request.by,
        cancel_reason=request.reason,
        detail={"canceled_by": request.by, "cancel_reason": request.reason},
        record=ending.record if isinstance(ending, Lost | Overruled) else None,
    )


def _again(
    hold: Hold, trigger: Trigger, error: ErrorInfo, policy: RetryPolicy, run_at: datetime
) -> Transition:
    lost = trigger is Trigger.LOSE_LEASE
    if hold.spent >= policy.max_attempts:
        before = (EventType.LEASE_LOST,) if lost else ()
        # The dead letter comes before the failure, so that the terminal event stays the last one.
        return _fail(hold, error, Outcome.DEAD, *before, EventType.DEADLETTERED, EventType.FAILED)
    event = EventType.LEASE_LOST if lost else EventType.RETRIED
    return _requeue(hold, trigger, event, run_at, error)


def _requeue(
    hold: Hold,
    trigger: Trigger,
    event: EventType,
    run_at: datetime,
    error: ErrorInfo | None = None,
    reason: str | None = None,
) -> Transition:
    return Transition(
        trigger,
        _to(hold, trigger),
        Outcome.PENDING,
        (event,),
        run_at=run_at,
        gives_back=trigger is Trigger.GIVE_BACK,
        error=error,
        detail={"run_at": run_at.isoformat(), **({"reason": reason} if reason else {})},
    )


def _after(now: datetime, wait: timedelta) -> datetime:
    return now + min(max(wait, timedelta(0)), LONGEST_WAIT)


def _to(hold: Hold, trigger: Trigger) -> Status:
    return TRANSITIONS[hold.status, trigger]
