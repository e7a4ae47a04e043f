"""What Hypothesis draws for the decision: holds, endings, policies, moments and dice."""

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
waits = st.timedeltas(timedelta(seconds=-5), 30 * DAY)
lengths = st.timedeltas(timedelta(microseconds=1), 10 * DAY)

done = st.builds(Completed, partially=st.booleans())
failed = st.builds(Failed, st.just(ERROR), blocked=st.booleans())
retry = st.builds(Retried, st.just(ERROR), after=st.none() | waits)
snooze = st.builds(Snoozed, waits)
lost = st.just(Lost())
canceled = st.builds(Canceled, st.sampled_from(["user", "system", "worker"]), st.text(max_size=5))
unfinished = retry | snooze | lost
endings = done | failed | canceled | unfinished

policies = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 100),
    base=lengths,
    cap=lengths,
    delays=st.just(()) | st.lists(lengths, min_size=1, max_size=4).map(tuple),
)


@st.composite
def held(draw: st.DrawFn, requested: st.SearchStrategy[Canceled | None]) -> JobState:
    attempt = draw(st.integers(1, 120))
    return JobState(
        status=draw(st.sampled_from([Status.RUNNING, Status.PARTIAL])),
        attempt=attempt,
        returned=draw(st.integers(0, attempt - 1)),
        cancel_requested=draw(requested),
    )


holds = held(st.none() | canceled)
unrequested = held(st.none())
