"""How times are spread: counted in buckets that grow by the same factor, from a millisecond to days."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import partial

_STEPS = 2
"""Buckets for each doubling: a bucket is 41 % wider than the one before."""
_LEAST = 0.001
_DOUBLINGS = 28
BOUNDS = tuple(_LEAST * 2 ** (n / _STEPS) for n in range(_DOUBLINGS * _STEPS + 1))
"""The upper end of each bucket in seconds; one more has what is longer."""

_bucket = partial(bisect_left, BOUNDS)


def spread(seconds: Iterable[float]) -> Counter[int]:
    """How many of these times are in which bucket."""
    return Counter(map(_bucket, seconds))


def count_into(counts: Counter[int], seconds: Collection[float]) -> None:
    """Add these times to others; most often it is one, or many."""
    if len(seconds) == 1:
        for one in seconds:
            counts[_bucket(one)] += 1
    else:
        counts.update(map(_bucket, seconds))


def quantile(counts: Mapping[int, int], part: float) -> float | None:
    """The time in seconds that this part of them did not exceed, as far as buckets tell; None of none."""
    total = sum(counts.values())
    if not total:
        return None
    wanted, below = part * total, 0
    for bucket, count in sorted(counts.items()):
        if below + count >= wanted:
            return _between(bucket, (wanted - below) / count)
        below += count
    raise ValueError(f"{part} is no part of a whole")


def _between(bucket: int, part: float) -> float:
    """A time within a bucket: as buckets grow, so do the steps in it."""
    upper = BOUNDS[min(bucket, len(BOUNDS) - 1)]
    if bucket == 0:
        return float(upper * part)
    lower = BOUNDS[bucket - 1]
    return float(lower * (upper / lower) ** part)
