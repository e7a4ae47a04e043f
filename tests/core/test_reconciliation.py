"""Transitions of jobs that the reconciler or the reaper ends, not their worker."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from duly.core.decide import JobState, decide
from duly.core.outcome import Canceled, Lost, Reconciled
from duly.core.policy import RetryPolicy
from duly.core.reconciliation import REASONS, ReasonCode, ReconciliationKind, ReconciliationRecord
from duly.core.states import TRANSITIONS, Outcome, Status, Trigger

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ONCE = RetryPolicy(max_attempts=1)


def record(kind: ReconciliationKind = ReconciliationKind.STALE_RUNNING) -> ReconciliationRecord:
    return ReconciliationRecord.of(kind, {"age_seconds": 9}, NOW)


@pytest.mark.parametrize("kind", ReconciliationKind)
def test_every_kind_has_a_reason_code_and_a_message(kind: ReconciliationKind) -> None:
    reconciliation = record(kind)
    assert reconciliation.reason_code in ReasonCode
    assert reconciliation.message == REASONS[kind][1]
    assert ReconciliationRecord.of(kind, {}, NOW, message="better message").message == "better message"


@pytest.mark.parametrize(
    ("status", "trigger"),
    [
        (Status.QUEUED, Trigger.RECONCILE),
        (Status.RUNNING, Trigger.FAIL),
        (Status.PARTIAL, Trigger.FAIL),
    ],
)
def test_a_reconciled_job_fails_with_the_recorded_reason(status: Status, trigger: Trigger) -> None:
    transition = decide(JobState(status, 1), Reconciled(record()), RetryPolicy(), NOW, 0.5)
    assert (transition.trigger, transition.status, transition.outcome) == (
        trigger,
        TRANSITIONS[status, trigger],
        Outcome.FAILED,
    )
    assert transition.events == ("job.reconciled", "job.failed")
    assert transition.error is not None
    assert (transition.error.code, transition.retryable, transition.record) == (
        "run.stale_running",
        True,
        record(),
    )


@pytest.mark.parametrize(
    ("attempt_outcome", "event"),
    [(Reconciled(record()), "job.reconciled"), (Lost(record=record()), "job.lease_lost")],
)
def test_a_cancel_request_takes_precedence_over_reconciliation(
    attempt_outcome: Reconciled | Lost, event: str
) -> None:
    job = JobState(Status.RUNNING, 1, cancel_requested=Canceled("user", "enough"))
    transition = decide(job, attempt_outcome, RetryPolicy(), NOW, 0.5)
    assert (transition.status, transition.events) == (Status.CANCELED, (event, "job.canceled"))
    assert transition.record == record()


@pytest.mark.parametrize(("policy", "status"), [(RetryPolicy(), Status.QUEUED), (ONCE, Status.FAILED)])
def test_a_lost_lease_is_recorded_whether_the_job_is_retried_or_fails(
    policy: RetryPolicy, status: Status
) -> None:
    transition = decide(JobState(Status.RUNNING, 1), Lost(record=record()), policy, NOW, 0.5)
    assert (transition.status, transition.record) == (status, record())


def test_an_ended_job_cannot_be_reconciled() -> None:
    for status in Status:
        if status.terminal:
            with pytest.raises(KeyError):
                decide(JobState(status, 1), Reconciled(record()), RetryPolicy(), NOW, 0.5)
