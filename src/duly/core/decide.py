"""Decide the transition of a job from the outcome of an attempt."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from duly.core.outcome import (
    AttemptOutcome,
    Canceled,
    CanceledBy,
    Completed,
    ErrorInfo,
    Failed,
    Lost,
    Reconciled,
    Retried,
    Snoozed,
)
from duly.core.policy import RetryPolicy
from duly.core.reconciliation import ReconciliationRecord
from duly.core.states import TRANSITIONS, EventType, Outcome, Status, Trigger

MAX_DELAY = timedelta(days=3650)
"""The longest delay of a retry or a snooze, whatever a handler or a provider requests."""


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of a job on which a decision is based."""

    status: Status
    attempt: int
    """The fence: grows with every claim, never falls."""
    returned: int = 0
    """The attempts that were given back and do not count."""
    cancel_requested: Canceled | None = None

    @property
    def spent(self) -> int:
        """The attempts that count against the policy's maximum."""
        return self.attempt - self.returned


@dataclass(frozen=True, slots=True)
class Transition:
    """The changes to write; the store applies them only where the fence still holds."""

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
    done: Completed | None = None
    detail: dict[str, Any] | None = None
    """The payload of the events beyond the error."""
    summary_counts: dict[str, float] = field(default_factory=dict)
    failure_summary: tuple[dict[str, Any], ...] = ()
    record: ReconciliationRecord | None = None
    """The finding of the reconciler, if it ended the attempt instead of the worker."""


def decide(
    state: JobState, outcome: AttemptOutcome, policy: RetryPolicy, now: datetime, chance: float
) -> Transition:
    """Turn the outcome of an attempt into the transition of its job.

    Pure: the time and the random number in [0, 1) for the jitter are arguments.
    """
    match outcome:
        case Completed():
            return finish(state, outcome)
        case Failed(error, blocked):
            failure = Outcome.BLOCKED if blocked else Outcome.FAILED
            return _fail(state, error, failure, EventType.FAILED)
        case Canceled():
            return _cancel(state, outcome)
        case _ if state.cancel_requested is not None:
            return _cancel(state, state.cancel_requested, outcome)
        case Reconciled(record):
            return _reconcile(state, record)
        case Snoozed(delay, reason):
            run_at = _after(now, delay)
            return _requeue(state, Trigger.GIVE_BACK, EventType.SNOOZED, run_at, reason=reason)
        case Retried(error, after):
            delay = max(policy.delay(state.spent, chance), after or timedelta(0))
            return _retry_or_dead_letter(state, Trigger.RETRY, error, policy, _after(now, delay))
        case Lost(reason, record):
            error = ErrorInfo("lease_lost", reason)
            return replace(
                _retry_or_dead_letter(state, Trigger.LOSE_LEASE, error, policy, now), record=record
            )


def finish(state: JobState, completed: Completed) -> Transition:
    """Return the transition of a finished job; it needs neither time nor chance."""
    return Transition(
        Trigger.FINISH,
        _target(state, Trigger.FINISH),
        Outcome.PARTIALLY_SUCCEEDED if completed.partially else Outcome.SUCCEEDED,
        (EventType.COMPLETED,),
        done=completed,
        summary_counts=completed.summary_counts,
        failure_summary=completed.failure_summary,
    )


def _fail(state: JobState, error: ErrorInfo, outcome: Outcome, *events: EventType) -> Transition:
    status = _target(state, Trigger.FAIL)
    return Transition(Trigger.FAIL, status, outcome, events, error=error, retryable=outcome is Outcome.DEAD)


def _reconcile(state: JobState, record: ReconciliationRecord) -> Transition:
    trigger = Trigger.RECONCILE if state.status is Status.QUEUED else Trigger.FAIL
    return Transition(
        trigger,
        _target(state, trigger),
        Outcome.FAILED,
        (EventType.RECONCILED, EventType.FAILED),
        error=ErrorInfo(record.reason_code, record.message),
        retryable=True,
        record=record,
    )


_EVENT_BEFORE_CANCEL = {Lost: (EventType.LEASE_LOST,), Reconciled: (EventType.RECONCILED,)}


def _cancel(state: JobState, request: Canceled, outcome: AttemptOutcome | None = None) -> Transition:
    return Transition(
        Trigger.CANCEL,
        _target(state, Trigger.CANCEL),
        Outcome.CANCELED,
        (*_EVENT_BEFORE_CANCEL.get(type(outcome), ()), EventType.CANCELED),
        canceled_by=request.by,
        cancel_reason=request.reason,
        detail={"canceled_by": request.by, "cancel_reason": request.reason},
        record=outcome.record if isinstance(outcome, Lost | Reconciled) else None,
    )


def _retry_or_dead_letter(
    state: JobState, trigger: Trigger, error: ErrorInfo, policy: RetryPolicy, run_at: datetime
) -> Transition:
    lost = trigger is Trigger.LOSE_LEASE
    if state.spent >= policy.max_attempts:
        before = (EventType.LEASE_LOST,) if lost else ()
        # The dead letter comes before the failure, so that the terminal event stays the last one.
        return _fail(state, error, Outcome.DEAD, *before, EventType.DEADLETTERED, EventType.FAILED)
    event = EventType.LEASE_LOST if lost else EventType.RETRIED
    return _requeue(state, trigger, event, run_at, error)


def _requeue(
    state: JobState,
    trigger: Trigger,
    event: EventType,
    run_at: datetime,
    error: ErrorInfo | None = None,
    reason: str | None = None,
) -> Transition:
    return Transition(
        trigger,
        _target(state, trigger),
        Outcome.PENDING,
        (event,),
        run_at=run_at,
        gives_back=trigger is Trigger.GIVE_BACK,
        error=error,
        detail={"run_at": run_at.isoformat(), **({"reason": reason} if reason else {})},
    )


def _after(now: datetime, delay: timedelta) -> datetime:
    return now + min(max(delay, timedelta(0)), MAX_DELAY)


def _target(state: JobState, trigger: Trigger) -> Status:
    return TRANSITIONS[state.status, trigger]
