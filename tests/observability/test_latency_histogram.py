"""Latency histograms: quantiles are accurate to a bucket."""

from __future__ import annotations

from collections import Counter

import pytest

from duly.observability.latency_histogram import BOUNDS, count_buckets, count_into, quantile


@pytest.mark.parametrize("seconds", [0.0015, 0.02, 0.7, 1.0, 42.0, 3600.0, 100_000.0])
def test_a_quantile_is_accurate_to_its_bucket(seconds: float) -> None:
    for part in (0.01, 0.5, 0.95, 1.0):
        estimate = quantile(count_buckets([seconds] * 7), part)
        assert estimate is not None
        assert seconds / 1.42 <= estimate <= seconds * 1.42


def test_quantiles_are_ordered_and_merging_counts_does_not_change_them() -> None:
    fast, slow = [0.01 * n for n in range(1, 90)], [5.0] * 11
    merged = count_buckets(fast)
    for more in (slow[:1], slow[1:], []):
        count_into(merged, more)
    assert merged == count_buckets(fast + slow)
    median, p95 = quantile(merged, 0.5), quantile(merged, 0.95)
    assert median is not None
    assert p95 is not None
    assert 0.35 < median < 0.7
    assert 3.5 < p95 <= 5.7


def test_an_empty_histogram_has_no_quantile_and_extreme_times_have_a_bucket() -> None:
    assert quantile(Counter(), 0.5) is None
    assert count_buckets([0.0, 0.0005, 1e9]) == {0: 2, len(BOUNDS): 1}
    assert quantile(count_buckets([0.0]), 0.5) == pytest.approx(0.0005)
    assert quantile(count_buckets([1e9]), 0.5) == pytest.approx(BOUNDS[-1], rel=0.5)
