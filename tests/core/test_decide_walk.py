"""Whole lives of jobs: claimed, ended and claimed again, until they are over."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from duly.core.decide import JobState, decide
from duly.core.outcome import AttemptOutcome, Canceled
from duly.core.policy import RetryPolicy
from duly.core.states import TERMINAL_EVENT, TRANSITIONS, EventType, Outcome, Status, Trigger
from tests.core.drawn import canceled, chances, lost, retry, snooze, unfinished

limits = st.integers(1, 8)
lives = st.lists(st.tuples(unfinished, st.booleans(), chances), max_size=40)


@dataclass
class Life:
    """A job as a store would keep it, without one."""

    policy: RetryPolicy
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    status: Status = TRANSITIONS[None, Trigger.ENQUEUE]
    outcome: Outcome = Outcome.PENDING
    attempt: int = 0
    returned: int = 0
    starts: list[datetime] = field(default_factory=list)
    events: list[EventType] = field(default_factory=lambda: [EventType.QUEUED])

    def live(
        self, ending: AttemptOutcome, *, chunk: bool, chance: float, asked: Canceled | None = None
    ) -> None:
        self.status = TRANSITIONS[self.status, Trigger.CLAIM]
        self.attempt += 1
        self.starts.append(self.now)
        self.events.append(EventType.STARTED)
        if chunk:
            self.status = TRANSITIONS[self.status, Trigger.CHUNK]
            self.events.append(EventType.PARTIAL)
        hold = JobState(self.status, self.attempt, self.returned, asked)
        made = decide(hold, ending, self.policy, self.now, chance)
        self.status, self.outcome = made.status, made.outcome
        self.returned += made.gives_back
        self.events.extend(made.events)
        self.now = max(self.now + timedelta(seconds=1), made.run_at or self.now)

    @property
    def spent(self) -> int:
        return self.attempt - self.returned


def lived(limit: int, steps: list[tuple[AttemptOutcome, bool, float]], asked: Canceled | None = None) -> Life:
    life = Life(RetryPolicy(max_attempts=limit))
    for ending, chunk, chance in steps:
        if life.status.terminal:
            break
        life.live(ending, chunk=chunk, chance=chance, asked=asked)
    return life


@given(limits, lives)
def test_no_life_spends_more_attempts_than_its_policy_allows(
    limit: int, steps: list[tuple[AttemptOutcome, bool, float]]
) -> None:
    life = lived(limit, steps)
    assert life.spent <= limit
    assert (life.spent == limit and life.status.terminal) == (life.outcome is Outcome.DEAD)


@given(limits, lives)
def test_a_terminal_event_is_there_exactly_once_at_the_end_and_not_before(
    limit: int, steps: list[tuple[AttemptOutcome, bool, float]]
) -> None:
    life = lived(limit, steps)
    ends = [i for i, event in enumerate(life.events) if event in TERMINAL_EVENT.values()]
    if life.status.terminal:
        assert ends == [len(life.events) - 1]
        assert life.events[-1] is TERMINAL_EVENT[life.status]
    else:
        assert ends == []


@given(limits, lives)
def test_every_attempt_starts_once_and_ends_before_the_next(
    limit: int, steps: list[tuple[AttemptOutcome, bool, float]]
) -> None:
    life = lived(limit, steps)
    assert life.events.count(EventType.STARTED) == life.attempt
    closing = [EventType.RETRIED, EventType.SNOOZED, EventType.LEASE_LOST, EventType.DEADLETTERED]
    between = "".join("s" if e is EventType.STARTED else "e" if e in closing else "" for e in life.events)
    assert "ss" not in between
    assert life.starts == sorted(life.starts)


@given(limits, st.data())
def test_a_job_that_only_fails_dies_at_its_last_attempt(limit: int, data: st.DataObject) -> None:
    steps = st.tuples(retry | lost, st.booleans(), chances)
    life = lived(limit, data.draw(st.lists(steps, min_size=limit, max_size=limit + 5)))
    assert (life.attempt, life.outcome) == (limit, Outcome.DEAD)
    assert life.events.count(EventType.DEADLETTERED) == 1


@given(limits, st.lists(st.tuples(snooze, st.booleans(), chances), min_size=10, max_size=40))
def test_a_job_that_only_snoozes_lives_for_ever(
    limit: int, steps: list[tuple[AttemptOutcome, bool, float]]
) -> None:
    life = lived(limit, steps)
    assert (life.attempt, life.spent, life.status) == (len(steps), 0, Status.QUEUED)


@given(limits, lives.filter(bool), canceled)
def test_a_canceled_job_does_not_outlive_the_attempt_it_was_canceled_in(
    limit: int, steps: list[tuple[AttemptOutcome, bool, float]], asked: Canceled
) -> None:
    life = lived(limit, steps, asked)
    assert (life.attempt, life.status, life.events[-1]) == (1, Status.CANCELED, EventType.CANCELED)
