"""A time scale that shortens idle times, so that short busy times stay visible."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise

_MIN_BUSY_TIME = 0.1
"""If this fraction of the time was busy, nothing is shortened."""
_MIN_BUSY_WIDTH = 0.3
"""Otherwise idle times are shortened until the busy ones take this fraction of the width."""


class TimeScale:
    """Positions from a start to an end; the busy times are true to each other."""

    def __init__(self, start: datetime, end: datetime, busy: Iterable[tuple[datetime, datetime]]) -> None:
        self._start = start
        self._times, self._positions, self.cuts = _layout(start, end, list(busy))

    def at(self, time: datetime) -> float:
        """Return the position of a time, from 0 to 1; times outside are at the edge."""
        seconds = (time - self._start).total_seconds()
        after = bisect_right(self._times, seconds)
        if after == 0:
            return 0.0
        if after == len(self._times):
            return 1.0
        begin, end = self._times[after - 1], self._times[after]
        left, right = self._positions[after - 1], self._positions[after]
        return round(left + (seconds - begin) / (end - begin) * (right - left), 4)

    def span(self, start: datetime, end: datetime) -> tuple[float, float]:
        """Return the position and the width of a span."""
        left = self.at(start)
        return left, round(max(self.at(end) - left, 0.0), 4)


def _layout(
    start: datetime, end: datetime, busy: list[tuple[datetime, datetime]]
) -> tuple[list[float], list[float], tuple[float, ...]]:
    """Return the times at which something changes, their positions, and the middles of shortened times."""
    whole = max((end - start).total_seconds(), 0.0)
    spans = [((a - start).total_seconds(), (b - start).total_seconds()) for a, b in busy]
    times = sorted({0.0, whole, *(min(max(at, 0.0), whole) for span in spans for at in span)})
    steps = [(a, b, any(s <= a and b <= e for s, e in spans)) for a, b in pairwise(times)]
    worked = sum(b - a for a, b, is_busy in steps if is_busy)
    max_idle = whole
    if 0 < worked < _MIN_BUSY_TIME * whole:
        idle = [b - a for a, b, is_busy in steps if not is_busy]
        max_idle = _max_idle_time(idle, worked * (1 / _MIN_BUSY_WIDTH - 1))
    positions, cuts, at = [0.0], [], 0.0
    for a, b, is_busy in steps:
        drawn = b - a if is_busy else min(b - a, max_idle)
        if drawn < b - a:
            cuts.append(at + drawn / 2)
        at += drawn
        positions.append(at)
    total = at or 1.0
    return times, [position / total for position in positions], tuple(round(cut / total, 4) for cut in cuts)


def _max_idle_time(idle: list[float], room: float) -> float:
    """Return the length to which idle times are shortened, so that all of them together fit."""
    for left, shortest in zip(range(len(idle), 0, -1), sorted(idle), strict=True):
        if shortest * left > room:
            return room / left
        room -= shortest
    return max(idle, default=0.0)
