"""Properties of every decision about a finished attempt."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given

from duly.core.decide import JobState, Transition, decide
from duly.core.outcome import AttemptOutcome
from duly.core.policy import RetryPolicy
from duly.core.states import OUTCOMES, TERMINAL_EVENT, TRANSITIONS, EventType, Outcome, Status
from tests.core.strategies import attempt_outcomes, chances, jobs, moments, policies, unfinished

ENDS = set(TERMINAL_EVENT.values())

any_attempt = given(job=jobs, attempt_outcome=attempt_outcomes, policy=policies, now=moments, chance=chances)


@any_attempt
def test_every_decision_is_a_transition_of_the_table(
    job: JobState, attempt_outcome: AttemptOutcome, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    transition = decide(job, attempt_outcome, policy, now, chance)
    assert TRANSITIONS[job.status, transition.trigger] is transition.status
    assert transition.outcome in OUTCOMES[transition.status]


@any_attempt
def test_a_job_that_ends_has_one_terminal_event_and_it_is_the_last(
    job: JobState, attempt_outcome: AttemptOutcome, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    transition = decide(job, attempt_outcome, policy, now, chance)
    terminal = [event for event in transition.events if event in ENDS]
    if transition.status.terminal:
        assert terminal == [transition.events[-1]] == [TERMINAL_EVENT[transition.status]]
    else:
        assert terminal == []
        assert len(transition.events) == 1


@any_attempt
def test_exactly_the_dead_jobs_have_a_dead_letter_event(
    job: JobState, attempt_outcome: AttemptOutcome, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    transition = decide(job, attempt_outcome, policy, now, chance)
    assert transition.events.count(EventType.DEADLETTERED) == (transition.outcome is Outcome.DEAD)


@any_attempt
def test_only_a_requeued_job_has_a_run_time_and_it_is_not_in_the_past(
    job: JobState, attempt_outcome: AttemptOutcome, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    transition = decide(job, attempt_outcome, policy, now, chance)
    if transition.status is Status.QUEUED:
        assert transition.run_at is not None
        assert transition.run_at >= now
    else:
        assert transition.run_at is None


@any_attempt
def test_each_transition_carries_the_fields_of_its_status_and_no_others(
    job: JobState, attempt_outcome: AttemptOutcome, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    transition = decide(job, attempt_outcome, policy, now, chance)
    assert (transition.done is not None) == (transition.status is Status.COMPLETED)
    assert (transition.canceled_by is not None) == (transition.status is Status.CANCELED)
    assert (transition.cancel_reason is not None) == (transition.status is Status.CANCELED)
    assert (transition.retryable is not None) == (transition.status is Status.FAILED)
    if transition.status is Status.FAILED:
        assert transition.error is not None
        assert transition.retryable is (transition.outcome is Outcome.DEAD)


@any_attempt
def test_a_decision_is_deterministic(
    job: JobState, attempt_outcome: AttemptOutcome, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    first, second = (decide(job, attempt_outcome, policy, now, chance) for _ in range(2))
    assert first == second


@given(job=jobs, attempt_outcome=unfinished, policy=policies, now=moments, later=chances, chance=chances)
def test_the_current_time_affects_the_run_time_only(
    job: JobState,
    attempt_outcome: AttemptOutcome,
    policy: RetryPolicy,
    now: datetime,
    later: float,
    chance: float,
) -> None:
    def at(moment: datetime) -> tuple[Transition, timedelta | None]:
        transition = decide(job, attempt_outcome, policy, moment, chance)
        wait = None if transition.run_at is None else transition.run_at - moment
        return transition, wait

    (early, first_wait), (late, second_wait) = at(now), at(now + timedelta(days=later))
    assert (early.trigger, early.status, early.events) == (late.trigger, late.status, late.events)
    assert first_wait == second_wait
