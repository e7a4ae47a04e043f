"""The axes of growth and their sizes."""

from __future__ import annotations

from typing import NamedTuple

_ORGS = 20


class Point(NamedTuple):
    """One database: queued jobs, orgs, and ended jobs."""

    size: int
    along: int
    """The position on the axis. Even without a history there are records: those of the backlog."""
    backlog: int
    orgs: int
    history: int = 0


class Axis(NamedTuple):
    """One dimension that grows while the others are constant."""

    name: str
    title: str
    points: tuple[Point, ...]


def _axes(
    backlogs: list[int], orgs: list[int], steady: int, many: list[int], histories: list[int]
) -> list[Axis]:
    return [
        Axis("backlog", f"ready jobs of {_ORGS} orgs", tuple(Point(n, n, n, _ORGS) for n in backlogs)),
        Axis(
            "orgs", f"orgs with {steady:,} ready jobs together", tuple(Point(n, n, steady, n) for n in orgs)
        ),
        Axis("wide", f"ready jobs of {orgs[-1]:,} orgs", tuple(Point(n, n, n, orgs[-1]) for n in many)),
        Axis(
            "history",
            f"ended jobs, {steady:,} ready jobs of {_ORGS} orgs",
            tuple(Point(n, n + steady, steady, _ORGS, n) for n in histories),
        ),
    ]


SIZES = {
    "full": _axes(
        [1_000, 10_000, 100_000, 1_000_000, 3_000_000],
        [1, 100, 1_000, 10_000],
        100_000,
        [100_000, 1_000_000],
        [0, 300_000, 3_000_000],
    ),
    "medium": _axes(
        [1_000, 10_000, 100_000], [1, 100, 1_000], 10_000, [10_000, 100_000], [0, 30_000, 300_000]
    ),
    "small": _axes([1_000, 3_000], [1, 20], 1_000, [1_000, 3_000], [0, 3_000]),
}
"""Every axis in three sizes: large for a report, small for a quick look, tiny for a test."""
