"""What each ending means: attempts, floors, cancel requests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given

from duly.core.decide import MAX_DELAY, JobState, decide
from duly.core.outcome import AttemptOutcome, Canceled, Completed, Failed, Lost, Retried, Snoozed
from duly.core.policy import RetryPolicy
from duly.core.states import EventType, Outcome, Status, Trigger
from tests.core.drawn import (
    ERROR,
    canceled,
    chances,
    done,
    failed,
    held,
    holds,
    lost,
    moments,
    policies,
    retry,
    snooze,
    unfinished,
    unrequested,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
THREE = RetryPolicy(max_attempts=3, delays=(timedelta(seconds=60),))


@given(hold=unrequested, ending=retry | lost, policy=policies, now=moments, chance=chances)
def test_a_job_is_dead_exactly_when_its_attempts_are_spent(
    hold: JobState, ending: AttemptOutcome, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    made = decide(hold, ending, policy, now, chance)
    spent = hold.attempt - hold.returned >= policy.max_attempts
    assert made.outcome is (Outcome.DEAD if spent else Outcome.PENDING)
    assert not made.gives_back


def test_a_dead_job_writes_its_dead_letter_before_the_failure() -> None:
    made = decide(JobState(Status.RUNNING, attempt=3), Retried(ERROR), THREE, NOW, 0.5)
    assert made.events == (EventType.DEADLETTERED, EventType.FAILED)
    assert (made.error, made.retryable) == (ERROR, True)


def test_a_job_that_dies_with_its_worker_says_so_first() -> None:
    made = decide(JobState(Status.PARTIAL, attempt=3), Lost(), THREE, NOW, 0.5)
    assert made.events == (EventType.LEASE_LOST, EventType.DEADLETTERED, EventType.FAILED)


def test_an_attempt_that_was_given_back_is_not_counted() -> None:
    made = decide(JobState(Status.RUNNING, attempt=3, returned=1), Retried(ERROR), THREE, NOW, 0.5)
    assert (made.trigger, made.run_at) == (Trigger.RETRY, NOW + timedelta(seconds=60))


def test_a_lost_lease_is_an_attempt_and_runs_again_at_once() -> None:
    made = decide(JobState(Status.RUNNING, attempt=2), Lost(), THREE, NOW, 0.5)
    assert (made.trigger, made.run_at, made.gives_back) == (Trigger.LOSE_LEASE, NOW, False)
    assert made.events == (EventType.LEASE_LOST,)


@given(hold=unrequested, ending=snooze, policy=policies, now=moments, chance=chances)
def test_a_snooze_never_spends_the_attempt_and_never_kills(
    hold: JobState, ending: Snoozed, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    made = decide(hold, ending, policy, now, chance)
    assert (made.trigger, made.gives_back) == (Trigger.GIVE_BACK, True)
    assert made.events == (EventType.SNOOZED,)
    assert made.run_at == now + max(ending.delay, timedelta(0))


@given(hold=unrequested, ending=retry, now=moments, chance=chances)
def test_what_the_provider_asks_for_is_a_floor(
    hold: JobState, ending: Retried, now: datetime, chance: float
) -> None:
    policy = RetryPolicy(max_attempts=100)
    made = decide(JobState(hold.status, attempt=min(hold.attempt, 99)), ending, policy, now, chance)
    assert made.run_at is not None
    assert made.run_at >= now + (ending.after or timedelta(0))
    assert made.run_at <= now + max(policy.cap, ending.after or timedelta(0))


@pytest.mark.parametrize("ending", [Retried(ERROR, timedelta.max), Snoozed(timedelta.max)])
def test_an_absurd_wait_is_cut_and_does_not_overflow(ending: AttemptOutcome) -> None:
    assert decide(JobState(Status.RUNNING, 1), ending, THREE, NOW, 0.5).run_at == NOW + MAX_DELAY


@given(hold=held(canceled), ending=unfinished, policy=policies, now=moments, chance=chances)
def test_a_cancel_request_wins_over_every_other_try(
    hold: JobState, ending: AttemptOutcome, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    made = decide(hold, ending, policy, now, chance)
    assert hold.cancel_requested is not None
    assert (made.status, made.outcome) == (Status.CANCELED, Outcome.CANCELED)
    assert (made.canceled_by, made.cancel_reason) == (hold.cancel_requested.by, hold.cancel_requested.reason)
    assert (EventType.LEASE_LOST in made.events) is isinstance(ending, Lost)


@given(hold=held(canceled), ending=done | failed, policy=policies, now=moments, chance=chances)
def test_a_cancel_request_comes_too_late_for_work_that_ended(
    hold: JobState, ending: Completed | Failed, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    made = decide(hold, ending, policy, now, chance)
    assert made.status is (Status.COMPLETED if isinstance(ending, Completed) else Status.FAILED)


@given(hold=holds, ending=canceled, policy=policies, now=moments, chance=chances)
def test_a_worker_that_stopped_on_a_cancel_says_who_asked(
    hold: JobState, ending: Canceled, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    made = decide(hold, ending, policy, now, chance)
    assert (made.canceled_by, made.cancel_reason) == (ending.by, ending.reason)


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [
        (Completed(), "succeeded"),
        (Completed(partially=True), "partially_succeeded"),
        (Failed(ERROR), "failed"),
        (Failed(ERROR, blocked=True), "blocked"),
        (Canceled("user", "wrong file"), "canceled"),
    ],
)
def test_an_ending_has_its_outcome_even_on_the_first_of_many_attempts(
    ending: AttemptOutcome, outcome: str
) -> None:
    assert decide(JobState(Status.RUNNING, attempt=1), ending, THREE, NOW, 0.5).outcome == outcome


@pytest.mark.parametrize("status", [Status.QUEUED, Status.COMPLETED, Status.FAILED, Status.CANCELED])
def test_nobody_decides_for_a_job_that_nobody_holds(status: Status) -> None:
    with pytest.raises(KeyError):
        decide(JobState(status, attempt=1), Completed(), THREE, NOW, 0.5)
