"""Outcomes of jobs that the reaper or the reconciler ends."""

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
def test_every_kind_has_its_code_and_its_words(kind: ReconciliationKind) -> None:
    made = record(kind)
    assert made.reason_code in ReasonCode
    assert made.message == REASONS[kind][1]
    assert ReconciliationRecord.of(kind, {}, NOW, message="better words").message == "better words"


@pytest.mark.parametrize(
    ("status", "trigger"),
    [
        (Status.QUEUED, Trigger.RECONCILE),
        (Status.RUNNING, Trigger.FAIL),
        (Status.PARTIAL, Trigger.FAIL),
    ],
)
def test_it_fails_for_the_reason_on_record(status: Status, trigger: Trigger) -> None:
    to = decide(JobState(status, 1), Reconciled(record()), RetryPolicy(), NOW, 0.5)
    assert (to.trigger, to.status, to.outcome) == (trigger, TRANSITIONS[status, trigger], Outcome.FAILED)
    assert to.events == ("job.reconciled", "job.failed")
    assert to.error is not None
    assert (to.error.code, to.retryable, to.record) == ("run.stale_running", True, record())


@pytest.mark.parametrize(
    ("ending", "told"), [(Reconciled(record()), "job.reconciled"), (Lost(record=record()), "job.lease_lost")]
)
def test_a_cancel_that_was_asked_for_comes_first(ending: Reconciled | Lost, told: str) -> None:
    hold = JobState(Status.RUNNING, 1, cancel_requested=Canceled("user", "enough"))
    to = decide(hold, ending, RetryPolicy(), NOW, 0.5)
    assert (to.status, to.events) == (Status.CANCELED, (told, "job.canceled"))
    assert to.record == record()


@pytest.mark.parametrize(("policy", "status"), [(RetryPolicy(), Status.QUEUED), (ONCE, Status.FAILED)])
def test_a_lost_lease_keeps_its_record_whatever_becomes_of_the_job(
    policy: RetryPolicy, status: Status
) -> None:
    to = decide(JobState(Status.RUNNING, 1), Lost(record=record()), policy, NOW, 0.5)
    assert (to.status, to.record) == (status, record())


def test_no_job_that_ended_can_be_overruled() -> None:
    for status in Status:
        if status.terminal:
            with pytest.raises(KeyError):
                decide(JobState(status, 1), Reconciled(record()), RetryPolicy(), NOW, 0.5)
