"""The timeline of a job."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from duly.core.job import ActorType, JobEvent
from duly.core.states import EventType, Status
from duly.features.job_detail.timeline import MarkKind, Refusal, Timeline, WaitKind, build_timeline

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
JOB = uuid.uuid4()


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def event(seq: int, what: str, seconds: float, attempt: int = 1, who: str = "w1", **payload: Any) -> JobEvent:
    return JobEvent(
        event_id=f"{JOB}:{seq}",
        job_id=JOB,
        event_seq=seq,
        event_type=f"job.{what}",
        status=Status.RUNNING,
        attempt=attempt,
        occurred_at=at(seconds),
        actor_type=ActorType.WORKER,
        actor_id=who,
        payload_json=payload,
    )


def timeline(*events: JobEvent, now: float = 100, **more: Any) -> Timeline:
    return build_timeline(events, created_at=NOON, now=at(now), **more)


def waits(found: Timeline, row: int = 0) -> list[tuple[str, float, bool]]:
    return [(one.kind.value, one.duration.total_seconds(), one.open) for one in found.rows[row].waits]


def marks(found: Timeline, row: int = 0) -> list[str]:
    return [mark.kind.value for mark in found.rows[row].marks]


QUEUED = event(1, "queued", 0, 0)


def test_a_plain_job_waits_then_runs() -> None:
    found = timeline(QUEUED, event(2, "started", 4), event(3, "completed", 10))
    assert (found.start, found.end) == (NOON, at(10))
    [row] = found.rows
    assert waits(found) == [("waiting", 4, False)]
    assert row.run is not None
    assert (row.run.ended, row.run.worker, row.run.left, row.run.width) == ("job.completed", "w1", 0.4, 0.6)
    assert not row.run.open


def test_a_job_without_a_worker_waits_until_a_rounded_now() -> None:
    found = timeline(QUEUED, now=43)
    assert waits(found) == [("waiting", 50, True)]
    assert found.rows[0].run is None
    assert found == timeline(QUEUED, now=44), "it does not change with every read"
    assert timeline(QUEUED, now=0).end == at(1)


def test_a_delayed_job_waits_for_its_time_and_then_for_a_worker() -> None:
    events = (QUEUED, event(2, "started", 10), event(3, "completed", 12))
    assert waits(timeline(*events, scheduled_for=at(8))) == [("delayed", 8, False), ("waiting", 2, False)]
    assert waits(timeline(QUEUED, now=5, scheduled_for=at(3600))) == [("delayed", 5, True)]
    assert waits(timeline(*events, scheduled_for=at(-5))) == [("waiting", 10, False)]


def test_retries_and_snoozes_are_rows_of_their_own_with_the_wait_before_them() -> None:
    found = timeline(
        QUEUED,
        event(2, "started", 0),
        event(3, "retried", 2, run_at=at(7).isoformat(), error_code="boom"),
        event(4, "started", 8, 2, "w2"),
        event(5, "snoozed", 9, 2, run_at=at(9).isoformat(), reason="drained"),
        event(6, "started", 10, 3, "w2"),
        event(7, "failed", 11, 3, error_code="boom"),
    )
    assert [waits(found, n) for n in range(3)] == [
        [],
        [("backoff", 5, False), ("waiting", 1, False)],
        [("waiting", 1, False)],
    ]
    ends = [(row.run.attempt, row.run.ended, row.run.worker) for row in found.rows if row.run]
    assert ends == [(1, "job.retried", "w1"), (2, "job.snoozed", "w2"), (3, "job.failed", "w2")]
    assert found.rows[0].run is not None
    assert found.rows[0].run.detail == {"run_at": at(7).isoformat(), "error_code": "boom"}


def test_a_job_in_backoff_shows_that_it_waits_for_its_time() -> None:
    found = timeline(
        QUEUED, event(2, "started", 0), event(3, "retried", 2, run_at=at(3600).isoformat()), now=9
    )
    assert waits(found, 1) == [("backoff", 8, True)]


def test_a_lost_lease_is_taken_over_and_the_zombie_is_refused() -> None:
    found = timeline(
        QUEUED,
        event(2, "started", 1),
        event(3, "lease_lost", 10, who="reaper"),
        event(4, "started", 12, 2, "w2"),
        event(5, "completed", 30, 2, "w2"),
        refusals=[Refusal(1, at(20), "completed")],
    )
    assert [marks(found, n) for n in range(2)] == [["lease_lost", "refused"], ["taken_over"]]
    lost = found.rows[0].run
    assert lost is not None
    assert lost.ended == EventType.LEASE_LOST
    assert lost.ghost is not None
    assert (lost.ghost.start, lost.ghost.end) == (at(10), at(20))
    refused = found.rows[0].marks[-1]
    assert refused.detail == {"outcome": "completed"}
    assert refused.left == lost.ghost.left + lost.ghost.width


def test_a_refusal_after_the_end_extends_the_timeline() -> None:
    events = (QUEUED, event(2, "started", 1), event(3, "lease_lost", 2), event(4, "started", 3, 2))
    found = timeline(*events, event(5, "completed", 4, 2), refusals=[Refusal(1, at(8)), Refusal(9, at(99))])
    assert found.end == at(8)
    assert found.rows[0].marks[-1].left == 1


def test_a_lost_lease_that_was_the_last_attempt_leaves_no_wait_behind() -> None:
    found = timeline(
        QUEUED,
        event(2, "started", 1),
        event(3, "lease_lost", 5, who="reaper"),
        event(4, "deadlettered", 5),
        event(5, "failed", 5),
    )
    assert len(found.rows) == 1
    assert marks(found) == ["lease_lost", "dead"]


def test_a_job_that_ended_while_queued_is_a_row_without_an_attempt() -> None:
    found = timeline(QUEUED, event(2, "reconciled", 9, 0, reconciliation={}), event(3, "failed", 9, 0))
    assert waits(found) == [("waiting", 9, False)]
    assert found.rows[0].run is None
    assert marks(found) == ["reconciled"]
    assert waits(timeline(QUEUED, event(2, "canceled", 3, 0))) == [("waiting", 3, False)]


def test_a_cancellation_is_marked_at_its_request() -> None:
    found = timeline(
        QUEUED, event(2, "started", 0), event(3, "cancel_requested", 5), event(4, "canceled", 10), now=10
    )
    assert [(mark.kind, mark.left) for mark in found.rows[0].marks] == [(MarkKind.CANCEL_REQUESTED, 0.5)]


def test_a_running_attempt_extends_to_the_right_edge() -> None:
    found = timeline(event(1, "queued", 0, 0), event(2, "replayed", 0, 0), event(3, "started", 3), now=7)
    [row] = found.rows
    assert row.run is not None
    assert row.run.open
    assert row.run.left + row.run.width == 1
    assert marks(found) == ["replayed"]


def test_partial_results_lie_within_their_attempt_in_order() -> None:
    partials = [event(3 + n, "partial", 2 + n, result_seq=n + 1) for n in range(3)]
    found = timeline(QUEUED, event(2, "started", 1), *partials, event(9, "completed", 9))
    run = found.rows[0].run
    assert run is not None
    assert [(c.count, c.last_seq, c.duration.total_seconds()) for c in run.results] == [
        (1, 1, 1), (1, 2, 1), (1, 3, 1),
    ]  # fmt: skip
    assert run.results[0].left == run.left


def test_hundreds_of_partial_results_are_grouped() -> None:
    partials = [event(3 + n, "partial", 2 + n / 100, result_seq=n + 1) for n in range(1_001)]
    run = timeline(QUEUED, event(2, "started", 1), *partials).rows[0].run
    assert run is not None
    assert len(run.results) <= 40
    assert sum(group.count for group in run.results) == 1_001
    assert run.results[-1].last_seq == 1_001


def test_a_timeline_without_its_first_events_is_marked_as_shortened() -> None:
    found = timeline(event(80, "started", 50, 40), event(81, "retried", 51, 40), event(82, "started", 52, 41))
    assert found.shortened
    assert found.start == at(50)
    assert [row.run.attempt for row in found.rows if row.run] == [40, 41]
    assert not timeline(QUEUED).shortened


def test_a_start_ends_the_attempt_before_it_whose_end_is_missing() -> None:
    found = timeline(QUEUED, event(2, "started", 1), event(5, "started", 5, 2, "w2"), now=6)
    assert [(row.run.attempt, row.run.ended) for row in found.rows if row.run] == [
        (1, "job.lease_lost"),
        (2, "running"),
    ]


def test_a_partial_result_starts_an_attempt_whose_start_is_missing() -> None:
    found = timeline(event(900, "partial", 5, 2, result_seq=700), event(901, "completed", 6, 2))
    assert [(row.run.attempt, row.run.start) for row in found.rows if row.run] == [(2, at(5))]
    assert found.shortened


def test_clocks_that_go_back_do_not_reverse_the_timeline() -> None:
    found = timeline(QUEUED, event(2, "started", -5), event(3, "completed", -9), now=-20)
    assert found.start == found.end == NOON
    run = found.rows[0].run
    assert run is not None
    assert (run.start, run.end, run.width) == (NOON, NOON, 0)


def test_a_job_without_events_has_one_row_without_an_attempt() -> None:
    found = timeline()
    assert [row.run for row in found.rows] == [None]


def test_invalid_times_in_events_are_ignored() -> None:
    for odd in (None, 7, "soon", "2026-11-16T12:00:00"):
        found = timeline(QUEUED, event(2, "started", 0), event(3, "retried", 2, run_at=odd), now=4)
        assert waits(found, 1) == [("waiting", 2, True)]


KINDS = st.sampled_from([one.removeprefix("job.") for one in EventType])
STEPS = st.lists(st.tuples(KINDS, st.floats(-5, 1e5), st.integers(0, 4)), max_size=40)


@given(STEPS, st.floats(0, 1e6), st.booleans())
def test_every_position_lies_within_the_timeline(
    steps: list[tuple[str, float, int]], now: float, begun: bool
) -> None:
    times = list(accumulate(step[1] for step in steps))
    events = [
        event(n + (1 if begun else 7), what, when, attempt)
        for n, ((what, _, attempt), when) in enumerate(zip(steps, times, strict=True))
    ]
    found = timeline(*events, now=now, refusals=[Refusal(1, at(now)), Refusal(2, at(-now))])
    for row in found.rows:
        parts = [*row.waits, *([row.run, *row.run.results] if row.run else [])]
        assert all(part.left >= 0 and part.left + part.width <= 1.0002 for part in parts)
        assert all(part.start <= part.end for part in parts)
        assert all(0 <= mark.left <= 1 for mark in row.marks)
    assert [row.run.open for row in found.rows if row.run].count(True) <= 1
    assert {wait.kind for row in found.rows for wait in row.waits} <= set(WaitKind)
