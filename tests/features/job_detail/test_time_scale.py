"""The time scale that shortens idle times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.features.job_detail.time_scale import TimeScale
from duly.features.job_detail.timeline_drawing import format_duration

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def scale(whole: float, *busy: tuple[float, float]) -> TimeScale:
    return TimeScale(NOON, at(whole), [(at(a), at(b)) for a, b in busy])


def test_a_busy_scale_is_linear() -> None:
    line = scale(10, (2, 4), (8, 10))
    assert line.cuts == ()
    assert [line.at(at(n)) for n in (0, 2, 4, 8, 10)] == [0, 0.2, 0.4, 0.8, 1]
    assert line.span(at(2), at(4)) == (0.2, 0.2)


def test_a_week_in_a_queue_does_not_hide_a_second_of_work() -> None:
    week = 7 * 86_400
    line = scale(week + 1, (week, week + 1))
    assert line.span(at(week), at(week + 1)) == (0.7, 0.3)
    assert line.cuts == (0.35,)


def test_only_long_idle_times_are_shortened() -> None:
    line = scale(1_003, (1, 2), (1_002, 1_003))
    assert len(line.cuts) == 1
    short = line.span(at(0), at(1))[1]
    assert short == pytest.approx(line.span(at(1), at(2))[1], abs=0.001)


def test_times_outside_are_at_the_edges() -> None:
    line = scale(10)
    assert (line.at(at(-5)), line.at(at(50)), line.at(at(5))) == (0, 1, 0.5)
    assert line.span(at(50), at(-5)) == (1, 0)


def test_a_scale_without_length_has_all_times_at_its_ends() -> None:
    line = scale(0, (0, 0))
    assert line.at(NOON) == 1
    assert line.at(at(-1)) == 0


TIMES = st.floats(0, 1e6, allow_nan=False)


@given(TIMES, st.lists(st.tuples(TIMES, TIMES), max_size=6), st.lists(TIMES, min_size=2, max_size=6))
def test_positions_are_in_order_and_within_the_scale(
    whole: float, busy: list[tuple[float, float]], moments: list[float]
) -> None:
    line = scale(whole, *[(min(span), max(span)) for span in busy])
    positions = [line.at(at(moment)) for moment in sorted(moments)]
    assert positions == sorted(positions)
    assert all(0 <= position <= 1 for position in (*positions, *line.cuts))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0004, "0 ms"),
        (0.9996, "1.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 0 s"),
        (119.6, "2 min 0 s"),
        (3599.7, "1 h 0 min"),
        (86399.9, "1 d 0 h"),
        (90000, "1 d 1 h"),
    ],
)
def test_a_duration_is_rounded_to_whole_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
