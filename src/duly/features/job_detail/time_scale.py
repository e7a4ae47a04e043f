"""Where moments lie on a line of limited length, on which times in which nothing was done are cut short."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise

_ENOUGH = 0.1
"""If so much of the whole time was busy, nothing is cut."""
_BUSY = 0.3
"""Otherwise idle times are cut until the busy ones have so much of the line."""


class Scale:
    """A line from a start to an end; the busy times on it are true to each other."""

    def __init__(self, start: datetime, end: datetime, busy: Iterable[tuple[datetime, datetime]]) -> None:
        self._start = start
        self._times, self._places, self.cuts = _laid(start, end, list(busy))

    def at(self, moment: datetime) -> float:
        """Its place, from 0 to 1; what lies outside is put at the edge."""
        seconds = (moment - self._start).total_seconds()
        after = bisect_right(self._times, seconds)
        if after == 0:
            return 0.0
        if after == len(self._times):
            return 1.0
        begin, end = self._times[after - 1], self._times[after]
        share = (seconds - begin) / (end - begin)
        place = self._places[after - 1] + share * (self._places[after] - self._places[after - 1])
        return round(place, 4)

    def span(self, start: datetime, end: datetime) -> tuple[float, float]:
        """Where it begins, and how much of the line it takes."""
        left = self.at(start)
        return left, round(max(self.at(end) - left, 0.0), 4)


def _laid(
    start: datetime, end: datetime, busy: list[tuple[datetime, datetime]]
) -> tuple[list[float], list[float], tuple[float, ...]]:
    """The moments at which something changes, where they lie, and the middles of what was cut."""
    whole = max((end - start).total_seconds(), 0.0)
    spans = [((a - start).total_seconds(), (b - start).total_seconds()) for a, b in busy]
    times = sorted({0.0, whole, *(min(max(at, 0.0), whole) for span in spans for at in span)})
    steps = [(a, b, any(s <= a and b <= e for s, e in spans)) for a, b in pairwise(times)]
    worked = sum(b - a for a, b, is_busy in steps if is_busy)
    most = whole
    if 0 < worked < _ENOUGH * whole:
        most = _longest([b - a for a, b, is_busy in steps if not is_busy], worked * (1 / _BUSY - 1))
    places, cuts, at = [0.0], [], 0.0
    for a, b, is_busy in steps:
        drawn = b - a if is_busy else min(b - a, most)
        if drawn < b - a:
            cuts.append(at + drawn / 2)
        at += drawn
        places.append(at)
    total = at or 1.0
    return times, [place / total for place in places], tuple(round(cut / total, 4) for cut in cuts)


def _longest(idle: list[float], room: float) -> float:
    """How long an idle time may be at most, so that all of them together fit in."""
    for left, shortest in zip(range(len(idle), 0, -1), sorted(idle), strict=True):
        if shortest * left > room:
            return room / left
        room -= shortest
    return max(idle, default=0.0)
