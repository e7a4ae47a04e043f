"""A job's life as shapes of a picture: places are percentages, words are in the visitor's language."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from duly.core.states import EventType
from duly.features.job_detail.timeline_models import Mark, MarkKind, Part, Row, Run, Waterfall

Say = Callable[..., str]
_THINNEST = 0.006
_ENDS = {
    "running": "running",
    EventType.COMPLETED: "completed",
    EventType.FAILED: "failed",
    EventType.RETRIED: "retried",
    EventType.SNOOZED: "put_off",
    EventType.LEASE_LOST: "lost",
    EventType.CANCELED: "canceled",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that lasted."""

    kind: str
    x: str
    width: str
    title: str
    y: int = 4
    height: int = 16


@dataclass(frozen=True, slots=True)
class Sign:
    """Something at one moment."""

    kind: str
    x: str
    title: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the picture, and of the table that says the same."""

    label: str
    worker: str
    ended: str
    """How the attempt ended, or `waiting`."""
    word: str
    start: datetime
    seconds: float | None
    """How long the attempt took; None while it lasts."""
    waited: float
    bars: tuple[Bar, ...]
    signs: tuple[Sign, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """All rows, and what their colours mean."""

    start: datetime
    end: datetime
    over: bool
    """Whether nothing more comes."""
    lines: tuple[Line, ...]
    cuts: tuple[str, ...]
    shortened: bool
    legend: tuple[tuple[str, str], ...]
    """The kinds of shapes that are there, with their words."""


def picture(drawn: Waterfall, say: Say, *, name_workers: bool) -> Picture:
    """The picture of a life. `name_workers` is for whoever operates the installation."""
    named = workers(drawn, say, name_workers=name_workers)
    lines = tuple(_line(row, say, named) for row in drawn.rows)
    over = not any(_still(row) for row in drawn.rows)
    kinds = dict.fromkeys(kind for line in lines for kind in _kinds(line))
    legend = tuple((kind, say(f"job.timeline.{kind}")) for kind in kinds)
    cuts = tuple(_percent(cut) for cut in drawn.cuts)
    return Picture(drawn.start, drawn.end, over, lines, cuts, drawn.shortened, legend)


def workers(drawn: Waterfall, say: Say, *, name_workers: bool) -> dict[str, str]:
    """What each worker is called: a number in the order of their coming; for operators with its id."""
    ids = dict.fromkeys(row.run.worker for row in drawn.rows if row.run)
    return {
        one: say("job.worker.named", n=n, id=one[:8]) if name_workers else say("job.worker", n=n)
        for n, one in enumerate(ids, 1)
    }


def end_of(run: Run) -> str:
    """How an attempt ended, in a word that styles and texts know."""
    return _ENDS.get(run.ended, "failed")


def _still(row: Row) -> bool:
    return (row.run is not None and row.run.open) or any(wait.open for wait in row.waits)


def _line(row: Row, say: Say, named: dict[str, str]) -> Line:
    run, waited = row.run, sum(wait.lasted.total_seconds() for wait in row.waits if not wait.open)
    bars = [_bar(wait.kind.value, wait, say, still=wait.open, height=8) for wait in row.waits]
    signs = tuple(_sign(mark, say) for mark in row.marks)
    if run is None:
        start = row.waits[0].start if row.waits else row.marks[0].moment
        word = say("job.timeline.waiting")
        return Line(word, "", "waiting", word, start, None, waited, tuple(bars), signs)
    ended = end_of(run)
    bars.append(_bar(ended, run, say, least=_THINNEST, still=run.open))
    bars += [_chunks(part, say, part.count) for part in run.chunks]
    if run.ghost is not None:
        bars.append(_bar("ghost", run.ghost, say, height=4))
    seconds = None if run.open else run.lasted.total_seconds()
    label = say("job.attempt", n=run.attempt)
    return Line(
        label,
        named[run.worker],
        ended,
        say(f"job.timeline.{ended}"),
        run.start,
        seconds,
        waited,
        tuple(bars),
        signs,
    )


def _bar(
    kind: str, part: Part, say: Say, *, least: float = 0.0, still: bool = False, height: int = 16
) -> Bar:
    title = say(f"job.timeline.{kind}")
    if not still:
        title = f"{title}: {spoken(part.lasted.total_seconds())}"
    width = max(part.width, least)
    left = min(part.left, 1 - width)
    return Bar(kind, _percent(left), _percent(width), title, 12 - height // 2, height)


def _chunks(part: Part, say: Say, count: int) -> Bar:
    end = min(part.left + part.width, 1.0)
    return Bar("chunk", _percent(end), "0%", say("job.timeline.chunks", n=count))


def _sign(mark: Mark, say: Say) -> Sign:
    title = say(f"job.timeline.{mark.kind.value}")
    if mark.kind is MarkKind.REFUSED and mark.detail.get("what"):
        title = f"{title} ({mark.detail['what']})"
    elif mark.detail.get("reason") or mark.detail.get("cancel_reason"):
        title = f"{title}: {mark.detail.get('reason') or mark.detail['cancel_reason']}"
    return Sign(mark.kind.value, _percent(mark.left), title, mark.moment)


def _kinds(line: Line) -> list[str]:
    return [*(bar.kind for bar in line.bars), *(sign.kind for sign in line.signs)]


def spoken(seconds: float) -> str:
    """How long something took, in the unit that says the most."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    if seconds < 86400:
        return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"
    return f"{seconds // 86400:.0f} d {seconds % 86400 // 3600:.0f} h"


def _percent(share: float) -> str:
    return f"{share * 100:.2f}%"
