"""The interval of a median follows from the order of the values alone."""

from __future__ import annotations

import random

import pytest
from bench.figures.numbers import Interval, median_interval


@pytest.mark.parametrize(
    ("count", "bounds"),
    [(6, (1, 6)), (7, (1, 7)), (8, (1, 8)), (9, (2, 8)), (12, (3, 10)), (15, (4, 12)), (20, (6, 15))],
)
def test_the_bounds_are_those_of_the_tables(count: int, bounds: tuple[int, int]) -> None:
    values = list(range(1, count + 1))
    random.Random(count).shuffle(values)
    found = median_interval(values)
    assert found == Interval(bounds[0], (count + 1) / 2, bounds[1])


@pytest.mark.parametrize("count", range(6))
def test_fewer_than_six_values_have_no_interval(count: int) -> None:
    assert median_interval([1.0] * count) is None


def test_five_values_have_one_of_less_confidence() -> None:
    assert median_interval([5, 1, 4, 2, 3], 0.93) == Interval(1, 3, 5)
    assert median_interval([5, 1, 4, 2, 3], 0.94) is None


def test_one_wild_value_in_nine_does_not_widen_the_interval() -> None:
    assert median_interval([10, 11, 12, 13, 14, 15, 16, 17, 9_000]) == Interval(11, 14, 17)


def test_the_true_median_is_inside_as_often_as_promised() -> None:
    chance = random.Random(1)
    for count in (6, 9, 15):
        samples = ([chance.expovariate(1.0) for _ in range(count)] for _ in range(4_000))
        found = [interval for sample in samples if (interval := median_interval(sample))]
        inside = sum(interval.low <= 0.6931 <= interval.high for interval in found) / 4_000
        assert inside >= 0.945, count


def test_an_interval_is_as_narrow_as_its_farther_bound() -> None:
    assert Interval(9.0, 10.0, 11.0).is_within(0.1)
    assert not Interval(8.9, 10.0, 10.1).is_within(0.1)
    assert not Interval(9.9, 10.0, 11.1).is_within(0.1)
