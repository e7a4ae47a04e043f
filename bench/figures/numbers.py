"""The few numbers that sum up many."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

Point = tuple[float, float]


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """The middle and the slow end: the smallest value that so many do not exceed; zero of none."""
    ordered = sorted(values)

    def at(percent: int) -> float:
        return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else 0.0

    return {f"p{percent}": at(percent) for percent in (50, 95, 99)}


def slope(points: Sequence[Point]) -> float:
    """By how much y grows with each unit of x, by least squares; zero where that cannot be said."""
    if len(points) < 2:
        return 0.0
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / spread if spread else 0.0


def drift(points: Sequence[Point]) -> float:
    """The growth over the whole range of x, relative to the mean of y: 0.1 is ten percent more at the end.

    By the middle one of the slopes between any two points, which single bad moments do not move.
    """
    mean = sum(y for _, y in points) / len(points) if points else 0.0
    steps = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2) if b[0] != a[0]]
    return statistics.median(steps) * (points[-1][0] - points[0][0]) / mean if steps and mean else 0.0


def pick(figures: Mapping[str, Any], *path: str) -> float:
    """The number at the end of a path of names."""
    found: Any = figures
    for name in path:
        found = found[name]
    return float(found)
