"""Sparklines: the SVG paths of small charts of the last hour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

WIDTH, HEIGHT = 120, 24
"""The size of a chart, in its own units."""
_BAR_GAP = 0.4
_MARGIN = 1.0
_MIN_BAR_HEIGHT = 0.6
_HEADROOM = 1.25
"""Keeps a constant line away from the upper edge, where it would look like one at its limit."""


class Bars(NamedTuple):
    """Stacked bars of two series, as paths."""

    lower: str
    upper: str
    peak: int
    """The value of the highest bar."""


class Line(NamedTuple):
    """A line with gaps where values are missing, as a path."""

    path: str
    peak: float


def bars(lower: Sequence[int], upper: Sequence[int]) -> Bars:
    """Draw one stacked bar per pair of values."""
    peak = max((a + b for a, b in zip(lower, upper, strict=True)), default=0)
    if not peak:
        return Bars("", "", 0)
    scale, width = HEIGHT / peak, WIDTH / len(lower)
    below = (_bar(n, 0.0, value * scale, width) for n, value in enumerate(lower) if value)
    above = (_bar(n, lower[n] * scale, value * scale, width) for n, value in enumerate(upper) if value)
    return Bars("".join(below), "".join(above), peak)


def line(values: Sequence[float | None]) -> Line:
    """Draw one point per value; an isolated point is a short stroke."""
    peak = max((value for value in values if value is not None), default=0.0)
    if not peak:
        return Line("", 0.0)
    step = WIDTH / len(values)
    runs = groupby(enumerate(values), key=lambda point: point[1] is not None)
    return Line("".join(_stroke(run, step, peak * _HEADROOM) for known, run in runs if known), peak)


def _bar(index: int, base: float, height: float, width: float) -> str:
    height = max(height, _MIN_BAR_HEIGHT)
    return f"M{_n(index * width)} {_n(HEIGHT - base)}v-{_n(height)}h{_n(width - _BAR_GAP)}v{_n(height)}z"


def _stroke(run: Iterable[tuple[int, float | None]], step: float, top: float) -> str:
    points = [
        (n * step, HEIGHT - _MARGIN - (value or 0.0) / top * (HEIGHT - 2 * _MARGIN)) for n, value in run
    ]
    if len(points) == 1:
        points.append((points[0][0] + step, points[0][1]))
    first, *rest = (f"{_n(x)} {_n(y)}" for x, y in points)
    return f"M{first}L{' '.join(rest)}"


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
