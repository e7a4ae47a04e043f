"""Transitions for each attempt outcome: attempts, minimum delays, cancel requests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given

from duly.core.decide import MAX_DELAY, JobState, decide
from duly.core.outcome import AttemptOutcome, Canceled, Completed, Failed, Lost, Retried, Snoozed
from duly.core.policy import RetryPolicy
from duly.core.states import EventType, Outcome, Status, Trigger
from tests.core.strategies import (
    ERROR,
    canceled,
    chances,
    completed,
    failed,
    held_jobs,
    jobs,
    jobs_without_cancel_request,
    lost,
    moments,
    policies,
    retry,
    snooze,
    unfinished,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
THREE_ATTEMPTS = RetryPolicy(max_attempts=3, delays=(timedelta(seconds=60),))


@given(
    job=jobs_without_cancel_request,
    attempt_outcome=retry | lost,
    policy=policies,
    now=moments,
    chance=chances,
)
def test_a_job_is_dead_exactly_when_its_attempts_are_spent(
    job: JobState, attempt_outcome: AttemptOutcome, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    transition = decide(job, attempt_outcome, policy, now, chance)
    spent = job.attempt - job.returned >= policy.max_attempts
    assert transition.outcome is (Outcome.DEAD if spent else Outcome.PENDING)
    assert not transition.gives_back


def test_a_dead_job_writes_its_dead_letter_before_the_failure() -> None:
    transition = decide(JobState(Status.RUNNING, attempt=3), Retried(ERROR), THREE_ATTEMPTS, NOW, 0.5)
    assert transition.events == (EventType.DEADLETTERED, EventType.FAILED)
    assert (transition.error, transition.retryable) == (ERROR, True)


def test_a_job_that_dies_with_its_worker_records_the_lost_lease_first() -> None:
    transition = decide(JobState(Status.PARTIAL, attempt=3), Lost(), THREE_ATTEMPTS, NOW, 0.5)
    assert transition.events == (EventType.LEASE_LOST, EventType.DEADLETTERED, EventType.FAILED)


def test_a_returned_attempt_is_not_counted() -> None:
    transition = decide(
        JobState(Status.RUNNING, attempt=3, returned=1), Retried(ERROR), THREE_ATTEMPTS, NOW, 0.5
    )
    assert (transition.trigger, transition.run_at) == (Trigger.RETRY, NOW + timedelta(seconds=60))


def test_a_lost_lease_counts_as_an_attempt_and_is_retried_at_once() -> None:
    transition = decide(JobState(Status.RUNNING, attempt=2), Lost(), THREE_ATTEMPTS, NOW, 0.5)
    assert (transition.trigger, transition.run_at, transition.gives_back) == (Trigger.LOSE_LEASE, NOW, False)
    assert transition.events == (EventType.LEASE_LOST,)


@given(job=jobs_without_cancel_request, attempt_outcome=snooze, policy=policies, now=moments, chance=chances)
def test_a_snooze_never_spends_the_attempt_and_never_ends_the_job(
    job: JobState, attempt_outcome: Snoozed, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    transition = decide(job, attempt_outcome, policy, now, chance)
    assert (transition.trigger, transition.gives_back) == (Trigger.GIVE_BACK, True)
    assert transition.events == (EventType.SNOOZED,)
    assert transition.run_at == now + max(attempt_outcome.delay, timedelta(0))


@given(job=jobs_without_cancel_request, attempt_outcome=retry, now=moments, chance=chances)
def test_the_requested_retry_delay_is_a_minimum(
    job: JobState, attempt_outcome: Retried, now: datetime, chance: float
) -> None:
    policy = RetryPolicy(max_attempts=100)
    transition = decide(
        JobState(job.status, attempt=min(job.attempt, 99)), attempt_outcome, policy, now, chance
    )
    assert transition.run_at is not None
    assert transition.run_at >= now + (attempt_outcome.after or timedelta(0))
    assert transition.run_at <= now + max(policy.cap, attempt_outcome.after or timedelta(0))


@pytest.mark.parametrize("attempt_outcome", [Retried(ERROR, timedelta.max), Snoozed(timedelta.max)])
def test_a_huge_delay_is_capped_and_does_not_overflow(attempt_outcome: AttemptOutcome) -> None:
    assert (
        decide(JobState(Status.RUNNING, 1), attempt_outcome, THREE_ATTEMPTS, NOW, 0.5).run_at
        == NOW + MAX_DELAY
    )


@given(job=held_jobs(canceled), attempt_outcome=unfinished, policy=policies, now=moments, chance=chances)
def test_a_cancel_request_takes_precedence_over_another_attempt(
    job: JobState, attempt_outcome: AttemptOutcome, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    transition = decide(job, attempt_outcome, policy, now, chance)
    assert job.cancel_requested is not None
    assert (transition.status, transition.outcome) == (Status.CANCELED, Outcome.CANCELED)
    assert (transition.canceled_by, transition.cancel_reason) == (
        job.cancel_requested.by,
        job.cancel_requested.reason,
    )
    assert (EventType.LEASE_LOST in transition.events) is isinstance(attempt_outcome, Lost)


@given(
    job=held_jobs(canceled), attempt_outcome=completed | failed, policy=policies, now=moments, chance=chances
)
def test_a_cancel_request_comes_too_late_for_finished_work(
    job: JobState, attempt_outcome: Completed | Failed, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    transition = decide(job, attempt_outcome, policy, now, chance)
    assert transition.status is (
        Status.COMPLETED if isinstance(attempt_outcome, Completed) else Status.FAILED
    )


@given(job=jobs, attempt_outcome=canceled, policy=policies, now=moments, chance=chances)
def test_a_canceled_attempt_records_its_canceler_and_reason(
    job: JobState, attempt_outcome: Canceled, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    transition = decide(job, attempt_outcome, policy, now, chance)
    assert (transition.canceled_by, transition.cancel_reason) == (attempt_outcome.by, attempt_outcome.reason)


@pytest.mark.parametrize(
    ("attempt_outcome", "outcome"),
    [
        (Completed(), "succeeded"),
        (Completed(partially=True), "partially_succeeded"),
        (Failed(ERROR), "failed"),
        (Failed(ERROR, blocked=True), "blocked"),
        (Canceled("user", "wrong file"), "canceled"),
    ],
)
def test_the_first_attempt_already_determines_the_outcome_of_the_job(
    attempt_outcome: AttemptOutcome, outcome: str
) -> None:
    assert (
        decide(JobState(Status.RUNNING, attempt=1), attempt_outcome, THREE_ATTEMPTS, NOW, 0.5).outcome
        == outcome
    )


@pytest.mark.parametrize("status", [Status.QUEUED, Status.COMPLETED, Status.FAILED, Status.CANCELED])
def test_a_job_that_is_not_held_has_no_decision(status: Status) -> None:
    with pytest.raises(KeyError):
        decide(JobState(status, attempt=1), Completed(), THREE_ATTEMPTS, NOW, 0.5)
