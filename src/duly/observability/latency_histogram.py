"""Latency histograms: buckets that grow by a constant factor, from a millisecond to days."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

_BUCKETS_PER_DOUBLING = 2
"""A bucket is 41 % wider than the one before."""
_SMALLEST = 0.001
_DOUBLINGS = 28
BOUNDS = tuple(
    _SMALLEST * 2 ** (n / _BUCKETS_PER_DOUBLING) for n in range(_DOUBLINGS * _BUCKETS_PER_DOUBLING + 1)
)
"""The upper bound of each bucket in seconds; one more bucket holds longer times."""

_bucket = partial(bisect_left, BOUNDS)


def count_buckets(seconds: Iterable[float]) -> Counter[int]:
    """Return the number of times per bucket."""
    return Counter(map(_bucket, seconds))


def count_into(counts: Counter[int], seconds: Collection[float]) -> None:
    """Add times to a histogram."""
    for bucket, n in filled_buckets(BOUNDS, seconds):
        counts[bucket] += n


def filled_buckets(bounds: Sequence[float], values: Collection[float]) -> Iterator[tuple[int, int]]:
    """Yield the buckets that have some of the values, and how many: a search per bucket, not per value."""
    ordered, start = sorted(values), 0
    while start < len(ordered):
        bucket = bisect_left(bounds, ordered[start])
        end = bisect_right(ordered, bounds[bucket], start) if bucket < len(bounds) else len(ordered)
        yield bucket, end - start
        start = end


def quantile(counts: Mapping[int, int], part: float) -> float | None:
    """Return a quantile in seconds, interpolated within its bucket; None for an empty histogram."""
    total = sum(counts.values())
    if not total:
        return None
    rank, below = part * total, 0
    for bucket, count in sorted(counts.items()):
        if below + count >= rank:
            return _interpolate(bucket, (rank - below) / count)
        below += count
    raise ValueError(f"a quantile must be between 0 and 1, got {part}")


def _interpolate(bucket: int, part: float) -> float:
    """Return a time within a bucket, interpolated geometrically, as buckets grow."""
    upper = BOUNDS[min(bucket, len(BOUNDS) - 1)]
    if bucket == 0:
        return float(upper * part)
    lower = BOUNDS[bucket - 1]
    return float(lower * (upper / lower) ** part)
