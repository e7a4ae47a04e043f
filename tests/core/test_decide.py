"""What holds for every ending of every attempt."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given

from duly.core.decide import JobState, Transition, decide
from duly.core.outcome import AttemptOutcome
from duly.core.policy import RetryPolicy
from duly.core.states import OUTCOMES, TERMINAL_EVENT, TRANSITIONS, EventType, Outcome, Status
from tests.core.drawn import chances, endings, holds, moments, policies, unfinished

ENDS = set(TERMINAL_EVENT.values())

everything = given(hold=holds, ending=endings, policy=policies, now=moments, chance=chances)


@everything
def test_every_decision_is_a_step_of_the_table(
    hold: JobState, ending: AttemptOutcome, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    made = decide(hold, ending, policy, now, chance)
    assert TRANSITIONS[hold.status, made.trigger] is made.status
    assert made.outcome in OUTCOMES[made.status]


@everything
def test_a_job_that_ends_has_one_terminal_event_and_it_is_the_last(
    hold: JobState, ending: AttemptOutcome, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    made = decide(hold, ending, policy, now, chance)
    terminal = [event for event in made.events if event in ENDS]
    if made.status.terminal:
        assert terminal == [made.events[-1]] == [TERMINAL_EVENT[made.status]]
    else:
        assert terminal == []
        assert len(made.events) == 1


@everything
def test_a_dead_job_and_a_dead_letter_are_the_same_thing(
    hold: JobState, ending: AttemptOutcome, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    made = decide(hold, ending, policy, now, chance)
    assert made.events.count(EventType.DEADLETTERED) == (made.outcome is Outcome.DEAD)


@everything
def test_only_a_job_that_goes_back_has_a_time_to_run_and_never_a_past_one(
    hold: JobState, ending: AttemptOutcome, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    made = decide(hold, ending, policy, now, chance)
    if made.status is Status.QUEUED:
        assert made.run_at is not None
        assert made.run_at >= now
    else:
        assert made.run_at is None


@everything
def test_each_transition_carries_the_fields_of_its_status_and_no_others(
    hold: JobState, ending: AttemptOutcome, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    made = decide(hold, ending, policy, now, chance)
    assert (made.done is not None) == (made.status is Status.COMPLETED)
    assert (made.canceled_by is not None) == (made.status is Status.CANCELED)
    assert (made.cancel_reason is not None) == (made.status is Status.CANCELED)
    assert (made.retryable is not None) == (made.status is Status.FAILED)
    if made.status is Status.FAILED:
        assert made.error is not None
        assert made.retryable is (made.outcome is Outcome.DEAD)


@everything
def test_the_same_question_has_the_same_answer(
    hold: JobState, ending: AttemptOutcome, policy: RetryPolicy, now: datetime, chance: float
) -> None:
    first, second = (decide(hold, ending, policy, now, chance) for _ in range(2))
    assert first == second


@given(hold=holds, ending=unfinished, policy=policies, now=moments, later=chances, chance=chances)
def test_the_clock_only_moves_the_time_to_run(
    hold: JobState, ending: AttemptOutcome, policy: RetryPolicy, now: datetime, later: float, chance: float
) -> None:
    def at(moment: datetime) -> tuple[Transition, timedelta | None]:
        made = decide(hold, ending, policy, moment, chance)
        wait = None if made.run_at is None else made.run_at - moment
        return made, wait

    (early, first_wait), (late, second_wait) = at(now), at(now + timedelta(days=later))
    assert (early.trigger, early.status, early.events) == (late.trigger, late.status, late.events)
    assert first_wait == second_wait
