"""Random sequences of attempts: jobs are claimed, requeued and claimed again until they end."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from duly.core.decide import JobState, decide
from duly.core.outcome import AttemptOutcome, Canceled
from duly.core.policy import RetryPolicy
from duly.core.states import TERMINAL_EVENT, TRANSITIONS, EventType, Outcome, Status, Trigger
from tests.core.strategies import canceled, chances, lost, retry, snooze, unfinished

limits = st.integers(1, 8)
attempt_lists = st.lists(st.tuples(unfinished, st.booleans(), chances), max_size=40)


@dataclass
class SimulatedJob:
    """The state of a job between its attempts, without a database."""

    policy: RetryPolicy
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    status: Status = TRANSITIONS[None, Trigger.ENQUEUE]
    outcome: Outcome = Outcome.PENDING
    attempt: int = 0
    returned: int = 0
    starts: list[datetime] = field(default_factory=list)
    events: list[EventType] = field(default_factory=lambda: [EventType.QUEUED])

    def run_attempt(
        self,
        attempt_outcome: AttemptOutcome,
        *,
        chunk: bool,
        chance: float,
        cancel_request: Canceled | None = None,
    ) -> None:
        self.status = TRANSITIONS[self.status, Trigger.CLAIM]
        self.attempt += 1
        self.starts.append(self.now)
        self.events.append(EventType.STARTED)
        if chunk:
            self.status = TRANSITIONS[self.status, Trigger.CHUNK]
            self.events.append(EventType.PARTIAL)
        state = JobState(self.status, self.attempt, self.returned, cancel_request)
        transition = decide(state, attempt_outcome, self.policy, self.now, chance)
        self.status, self.outcome = transition.status, transition.outcome
        self.returned += transition.gives_back
        self.events.extend(transition.events)
        self.now = max(self.now + timedelta(seconds=1), transition.run_at or self.now)

    @property
    def spent(self) -> int:
        return self.attempt - self.returned


def simulate(
    limit: int, steps: list[tuple[AttemptOutcome, bool, float]], cancel_request: Canceled | None = None
) -> SimulatedJob:
    job = SimulatedJob(RetryPolicy(max_attempts=limit))
    for attempt_outcome, chunk, chance in steps:
        if job.status.terminal:
            break
        job.run_attempt(attempt_outcome, chunk=chunk, chance=chance, cancel_request=cancel_request)
    return job


@given(limits, attempt_lists)
def test_no_job_spends_more_attempts_than_its_policy_allows(
    limit: int, steps: list[tuple[AttemptOutcome, bool, float]]
) -> None:
    job = simulate(limit, steps)
    assert job.spent <= limit
    assert (job.spent == limit and job.status.terminal) == (job.outcome is Outcome.DEAD)


@given(limits, attempt_lists)
def test_an_ended_job_has_exactly_one_terminal_event_and_it_is_the_last(
    limit: int, steps: list[tuple[AttemptOutcome, bool, float]]
) -> None:
    job = simulate(limit, steps)
    ends = [i for i, event in enumerate(job.events) if event in TERMINAL_EVENT.values()]
    if job.status.terminal:
        assert ends == [len(job.events) - 1]
        assert job.events[-1] is TERMINAL_EVENT[job.status]
    else:
        assert ends == []


@given(limits, attempt_lists)
def test_every_attempt_starts_once_and_ends_before_the_next_one(
    limit: int, steps: list[tuple[AttemptOutcome, bool, float]]
) -> None:
    job = simulate(limit, steps)
    assert job.events.count(EventType.STARTED) == job.attempt
    closing = [EventType.RETRIED, EventType.SNOOZED, EventType.LEASE_LOST, EventType.DEADLETTERED]
    between = "".join("s" if e is EventType.STARTED else "e" if e in closing else "" for e in job.events)
    assert "ss" not in between
    assert job.starts == sorted(job.starts)


@given(limits, st.data())
def test_a_job_that_only_fails_dies_at_its_last_attempt(limit: int, data: st.DataObject) -> None:
    steps = st.tuples(retry | lost, st.booleans(), chances)
    job = simulate(limit, data.draw(st.lists(steps, min_size=limit, max_size=limit + 5)))
    assert (job.attempt, job.outcome) == (limit, Outcome.DEAD)
    assert job.events.count(EventType.DEADLETTERED) == 1


@given(limits, st.lists(st.tuples(snooze, st.booleans(), chances), min_size=10, max_size=40))
def test_a_job_that_only_snoozes_never_ends(
    limit: int, steps: list[tuple[AttemptOutcome, bool, float]]
) -> None:
    job = simulate(limit, steps)
    assert (job.attempt, job.spent, job.status) == (len(steps), 0, Status.QUEUED)


@given(limits, attempt_lists.filter(bool), canceled)
def test_a_canceled_job_does_not_outlive_the_attempt_it_was_canceled_in(
    limit: int, steps: list[tuple[AttemptOutcome, bool, float]], cancel_request: Canceled
) -> None:
    job = simulate(limit, steps, cancel_request)
    assert (job.attempt, job.status, job.events[-1]) == (1, Status.CANCELED, EventType.CANCELED)
