"""Statistics."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

Point = tuple[float, float]
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A median, and the bounds that contain the true one with the confidence asked for."""

    low: float
    middle: float
    high: float

    def is_within(self, share: float) -> bool:
        """Whether both bounds are at most this share of the median away from it."""
        return max(self.high - self.middle, self.middle - self.low) <= share * abs(self.middle)


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """Return the median between two of the values; None if they are too few for this confidence.

    The k-th smallest and the k-th largest value are the bounds. They miss the true median, whatever the
    distribution, only if fewer than k values lie on one side of it, as in that many tosses of a coin. Six
    values are the fewest that give 95 %.
    """
    count = len(values)
    cut = missed = 0
    while (missed := missed + math.comb(count, cut)) * 2 <= (1 - confidence) * 2**count and cut < count:
        cut += 1
    if not cut:
        return None
    ordered = sorted(values)
    return Interval(ordered[cut - 1], statistics.median(ordered), ordered[-cut])


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return p50, p95 and p99: the smallest value that so many values do not exceed; zero without values."""
    ordered = sorted(values)

    def at(percent: int) -> float:
        return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else 0.0

    return {f"p{percent}": at(percent) for percent in (50, 95, 99)}


def slope(points: Sequence[Point]) -> float:
    """Return the growth of y per unit of x by least squares; zero if it is undefined."""
    if len(points) < 2:
        return 0.0
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / spread if spread else 0.0


def drift(points: Sequence[Point]) -> float:
    """Return the growth over the range of x, relative to the mean of y: 0.1 is ten percent more at the end.

    Uses the median of the slopes between any two points, which outliers do not affect.
    """
    mean = sum(y for _, y in points) / len(points) if points else 0.0
    steps = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2) if b[0] != a[0]]
    return statistics.median(steps) * (points[-1][0] - points[0][0]) / mean if steps and mean else 0.0


def pick(figures: Mapping[str, Any], *path: str) -> float:
    """Return the number at a path of keys."""
    found: Any = figures
    for name in path:
        found = found[name]
    return float(found)
