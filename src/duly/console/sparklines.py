"""Small pictures of the last hour, as paths of SVG: what a line of figures looks like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

WIDTH, HEIGHT = 120, 24
"""Of the picture, in its own units."""
_GAP = 0.4
_AIR = 1.0
_HEADROOM = 1.25
"""A line that stays the same is not one at its limit."""


class Bars(NamedTuple):
    """Two kinds on top of each other, as the paths of their bars."""

    lower: str
    upper: str
    most: int
    """What the highest bar stands for."""


class Line(NamedTuple):
    """A line, which has gaps where nothing is known."""

    path: str
    most: float


def bars(lower: Sequence[int], upper: Sequence[int]) -> Bars:
    """A bar for each pair."""
    most = max((a + b for a, b in zip(lower, upper, strict=True)), default=0)
    if not most:
        return Bars("", "", 0)
    scale, width = HEIGHT / most, WIDTH / len(lower)
    below = (_bar(n, 0.0, value * scale, width) for n, value in enumerate(lower) if value)
    above = (_bar(n, lower[n] * scale, value * scale, width) for n, value in enumerate(upper) if value)
    return Bars("".join(below), "".join(above), most)


def line(values: Sequence[float | None]) -> Line:
    """A point for each value; one that stands alone is a short stroke."""
    most = max((value for value in values if value is not None), default=0.0)
    if not most:
        return Line("", 0.0)
    step = WIDTH / len(values)
    highest = most * _HEADROOM
    runs = groupby(enumerate(values), key=lambda one: one[1] is not None)
    return Line("".join(_stroke(run, step, highest) for known, run in runs if known), most)


def _bar(place: int, base: float, height: float, width: float) -> str:
    height = max(height, 0.6)
    return f"M{_n(place * width)} {_n(HEIGHT - base)}v-{_n(height)}h{_n(width - _GAP)}v{_n(height)}z"


def _stroke(run: Iterable[tuple[int, float | None]], step: float, most: float) -> str:
    points = [(n * step, HEIGHT - _AIR - (value or 0.0) / most * (HEIGHT - 2 * _AIR)) for n, value in run]
    if len(points) == 1:
        points.append((points[0][0] + step, points[0][1]))
    first, *rest = (f"{_n(x)} {_n(y)}" for x, y in points)
    return f"M{first}L{' '.join(rest)}"


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
