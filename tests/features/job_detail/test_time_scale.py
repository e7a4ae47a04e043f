"""Moments on a line of limited length."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.features.job_detail.time_scale import Scale

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def scale(whole: float, *busy: tuple[float, float]) -> Scale:
    return Scale(NOON, at(whole), [(at(a), at(b)) for a, b in busy])


def test_what_is_busy_enough_is_true_to_time() -> None:
    line = scale(10, (2, 4), (8, 10))
    assert line.cuts == ()
    assert [line.at(at(n)) for n in (0, 2, 4, 8, 10)] == [0, 0.2, 0.4, 0.8, 1]
    assert line.span(at(2), at(4)) == (0.2, 0.2)


def test_a_week_in_a_queue_does_not_hide_a_second_of_work() -> None:
    week = 7 * 86_400
    line = scale(week + 1, (week, week + 1))
    assert line.span(at(week), at(week + 1)) == (0.7, 0.3)
    assert line.cuts == (0.35,)


def test_only_the_long_waits_are_cut() -> None:
    line = scale(1_003, (1, 2), (1_002, 1_003))
    assert len(line.cuts) == 1
    short = line.span(at(0), at(1))[1]
    assert short == pytest.approx(line.span(at(1), at(2))[1], abs=0.001)


def test_what_lies_outside_is_put_at_the_edge() -> None:
    line = scale(10)
    assert (line.at(at(-5)), line.at(at(50)), line.at(at(5))) == (0, 1, 0.5)
    assert line.span(at(50), at(-5)) == (1, 0)


def test_a_line_without_length_has_all_at_its_ends() -> None:
    line = scale(0, (0, 0))
    assert line.at(NOON) == 1
    assert line.at(at(-1)) == 0


TIMES = st.floats(0, 1e6, allow_nan=False)


@given(TIMES, st.lists(st.tuples(TIMES, TIMES), max_size=6), st.lists(TIMES, min_size=2, max_size=6))
def test_order_is_kept_and_nothing_leaves_the_line(
    whole: float, busy: list[tuple[float, float]], moments: list[float]
) -> None:
    line = scale(whole, *[(min(span), max(span)) for span in busy])
    places = [line.at(at(moment)) for moment in sorted(moments)]
    assert places == sorted(places)
    assert all(0 <= place <= 1 for place in (*places, *line.cuts))
