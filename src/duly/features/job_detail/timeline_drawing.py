"""Draw the timeline of a job: bars and signs with positions in percent and translated titles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from duly.core.states import EventType
from duly.features.job_detail.timeline import (
    AttemptSpan,
    MarkKind,
    Timeline,
    TimelineMark,
    TimelineRow,
    TimelineSpan,
)

Translate = Callable[..., str]
_MIN_RUN_WIDTH = 0.006
_RUN_KINDS = {
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
    """A span of time."""

    kind: str
    x: str
    width: str
    title: str
    y: int = 4
    height: int = 16


@dataclass(frozen=True, slots=True)
class Sign:
    """A mark at one moment."""

    kind: str
    x: str
    title: str
    at: datetime


@dataclass(frozen=True, slots=True)
class DrawnRow:
    """A row of the drawing, and of the table with the same content."""

    label: str
    worker: str
    ended: str
    """How the attempt ended, or `waiting`."""
    status: str
    """The same in the viewer's language."""
    start: datetime
    seconds: float | None
    """The duration of the attempt; None while it runs."""
    waited: float
    bars: tuple[Bar, ...]
    signs: tuple[Sign, ...]


@dataclass(frozen=True, slots=True)
class TimelineDrawing:
    """The rows, and the legend of their shapes."""

    start: datetime
    end: datetime
    over: bool
    """Whether the job has ended."""
    rows: tuple[DrawnRow, ...]
    cuts: tuple[str, ...]
    shortened: bool
    legend: tuple[tuple[str, str], ...]
    """The kinds of shapes with their labels."""


def draw_timeline(timeline: Timeline, t: Translate, *, name_workers: bool) -> TimelineDrawing:
    """Draw a timeline. `name_workers` adds the ids of workers, for operators."""
    labels = worker_labels(timeline, t, name_workers=name_workers)
    rows = tuple(_row(row, t, labels) for row in timeline.rows)
    kinds: dict[str, None] = {}
    for row in rows:
        kinds |= dict.fromkeys([*(bar.kind for bar in row.bars), *(sign.kind for sign in row.signs)])
    return TimelineDrawing(
        timeline.start,
        timeline.end,
        not any(_is_open(row) for row in timeline.rows),
        rows,
        tuple(_percent(cut) for cut in timeline.cuts),
        timeline.shortened,
        tuple((kind, t(f"job.timeline.{kind}")) for kind in kinds),
    )


def worker_labels(timeline: Timeline, t: Translate, *, name_workers: bool) -> dict[str, str]:
    """Return a label for each worker id: its number in order of appearance, for operators with its id."""
    ids = dict.fromkeys(row.run.worker for row in timeline.rows if row.run)
    return {
        worker: t("job.worker.named", n=n, id=worker[:8]) if name_workers else t("job.worker", n=n)
        for n, worker in enumerate(ids, 1)
    }


def run_kind(run: AttemptSpan) -> str:
    """Return how an attempt ended, as styles and messages name it."""
    return _RUN_KINDS.get(run.ended, "failed")


def _is_open(row: TimelineRow) -> bool:
    return (row.run is not None and row.run.open) or any(wait.open for wait in row.waits)


def _row(row: TimelineRow, t: Translate, labels: dict[str, str]) -> DrawnRow:
    run, waited = row.run, sum(wait.duration.total_seconds() for wait in row.waits if not wait.open)
    bars = [_bar(wait.kind.value, wait, t, is_open=wait.open, height=8) for wait in row.waits]
    signs = tuple(_sign(mark, t) for mark in row.marks)
    if run is None:
        start = row.waits[0].start if row.waits else row.marks[0].at
        label = t("job.timeline.waiting")
        return DrawnRow(label, "", "waiting", label, start, None, waited, tuple(bars), signs)
    ended = run_kind(run)
    bars.append(_bar(ended, run, t, min_width=_MIN_RUN_WIDTH, is_open=run.open))
    for span in run.results:
        end = min(span.left + span.width, 1.0)
        bars.append(Bar("chunk", _percent(end), "0%", t("job.timeline.chunks", n=span.count)))
    if run.ghost is not None:
        bars.append(_bar("ghost", run.ghost, t, height=4))
    return DrawnRow(
        t("job.attempt", n=run.attempt),
        labels[run.worker],
        ended,
        t(f"job.timeline.{ended}"),
        run.start,
        None if run.open else run.duration.total_seconds(),
        waited,
        tuple(bars),
        signs,
    )


def _bar(
    kind: str,
    span: TimelineSpan,
    t: Translate,
    *,
    min_width: float = 0.0,
    is_open: bool = False,
    height: int = 16,
) -> Bar:
    title = t(f"job.timeline.{kind}")
    if not is_open:
        title = f"{title}: {format_duration(span.duration.total_seconds())}"
    width = max(span.width, min_width)
    left = min(span.left, 1 - width)
    return Bar(kind, _percent(left), _percent(width), title, 12 - height // 2, height)


def _sign(mark: TimelineMark, t: Translate) -> Sign:
    title, detail = t(f"job.timeline.{mark.kind.value}"), mark.detail
    if mark.kind is MarkKind.REFUSED and detail.get("outcome"):
        title = f"{title} ({detail['outcome']})"
    elif detail.get("reason") or detail.get("cancel_reason"):
        title = f"{title}: {detail.get('reason') or detail['cancel_reason']}"
    return Sign(mark.kind.value, _percent(mark.left), title, mark.at)


def format_duration(seconds: float) -> str:
    """Return a duration in the one or two units that fit its size."""
    # Each bound is where rounding would reach the next unit.
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, second = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {second} s"
    hours, minute = divmod(minutes, 60)
    return f"{hours} h {minute} min" if hours < 24 else f"{hours // 24} d {hours % 24} h"


def _percent(share: float) -> str:
    return f"{share * 100:.2f}%"
