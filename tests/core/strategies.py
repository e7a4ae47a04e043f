"""Hypothesis strategies for decisions: held jobs, attempt outcomes, policies, times and random fractions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from duly.core.decide import JobState
from duly.core.outcome import Canceled, Completed, ErrorInfo, Failed, Lost, Retried, Snoozed
from duly.core.policy import RetryPolicy
from duly.core.states import Status

DAY = timedelta(days=1)
ERROR = ErrorInfo("provider.down", "the provider answered 503")

moments = st.datetimes(datetime(2000, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
chances = st.floats(0, 1, exclude_max=True)
delays = st.timedeltas(timedelta(seconds=-5), 30 * DAY)
durations = st.timedeltas(timedelta(microseconds=1), 10 * DAY)

completed = st.builds(Completed, partially=st.booleans())
failed = st.builds(Failed, st.just(ERROR), blocked=st.booleans())
retry = st.builds(Retried, st.just(ERROR), after=st.none() | delays)
snooze = st.builds(Snoozed, delays)
lost = st.just(Lost())
canceled = st.builds(Canceled, st.sampled_from(["user", "system", "worker"]), st.text(max_size=5))
unfinished = retry | snooze | lost
attempt_outcomes = completed | failed | canceled | unfinished

policies = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 100),
    base=durations,
    cap=durations,
    delays=st.just(()) | st.lists(durations, min_size=1, max_size=4).map(tuple),
)


@st.composite
def held_jobs(draw: st.DrawFn, cancel_requests: st.SearchStrategy[Canceled | None]) -> JobState:
    attempt = draw(st.integers(1, 120))
    return JobState(
        status=draw(st.sampled_from([Status.RUNNING, Status.PARTIAL])),
        attempt=attempt,
        returned=draw(st.integers(0, attempt - 1)),
        cancel_requested=draw(cancel_requests),
    )


jobs = held_jobs(st.none() | canceled)
jobs_without_cancel_request = held_jobs(st.none())
