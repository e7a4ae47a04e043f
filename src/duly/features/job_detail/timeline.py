"""The timeline of a job from its events: a row per attempt, with the waits before it and marks.

Long waits are shortened, so that a week in a queue does not hide the second of work. Positions are fractions
of the width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from math import floor, log10
from typing import Any, TypeVar

from duly.core.job import JobEvent
from duly.core.states import EventType
from duly.features.job_detail.time_scale import TimeScale

_MAX_RESULT_SPANS = 40
_ROUND_STEPS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
RUNNING = "running"
"""The `ended` of an attempt that has not ended; others are named like the event that ended them."""


class WaitKind(StrEnum):
    """The reason of a wait."""

    DELAYED = "delayed"
    """Until the requested start."""
    WAITING = "waiting"
    """For a worker."""
    BACKOFF = "backoff"
    """Until the next attempt."""
    SNOOZED = "snoozed"
    """Until the time that the handler set, or for another worker."""


class MarkKind(StrEnum):
    """The kind of a mark."""

    REPLAYED = "replayed"
    CANCEL_REQUESTED = "cancel_requested"
    LEASE_LOST = "lease_lost"
    TAKEN_OVER = "taken_over"
    REFUSED = "refused"
    """A write of an attempt after its lease was lost; it has no effect."""
    RECONCILED = "reconciled"
    DEAD = "dead"


_ENDED_BY_OTHERS = frozenset({MarkKind.LEASE_LOST, MarkKind.RECONCILED})


@dataclass(frozen=True, slots=True)
class TimelineSpan:
    """A span of time and its position."""

    start: datetime
    end: datetime
    left: float = 0.0
    width: float = 0.0

    @property
    def duration(self) -> timedelta:
        """The length in time."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class WaitSpan(TimelineSpan):
    """A time without an attempt."""

    kind: WaitKind = WaitKind.WAITING
    open: bool = False
    """Whether the job still waits."""


@dataclass(frozen=True, slots=True)
class ResultsSpan(TimelineSpan):
    """Partial results that were written until the end of this span."""

    count: int = 1
    last_seq: int = 0


@dataclass(frozen=True, slots=True)
class AttemptSpan(TimelineSpan):
    """An attempt."""

    attempt: int = 0
    worker: str = ""
    ended: str = RUNNING
    detail: dict[str, Any] | None = None
    results: tuple[ResultsSpan, ...] = ()
    ghost: TimelineSpan | None = None
    """The time that the worker went on after its lease was lost, until a write was refused."""

    @property
    def open(self) -> bool:
        """Whether the attempt still runs."""
        return self.ended == RUNNING


@dataclass(frozen=True, slots=True)
class TimelineMark:
    """Something at one moment."""

    kind: MarkKind
    at: datetime
    detail: dict[str, Any]
    left: float = 0.0


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """An attempt with the waits before it, or waits without an attempt."""

    waits: tuple[WaitSpan, ...] = ()
    run: AttemptSpan | None = None
    marks: tuple[TimelineMark, ...] = ()


@dataclass(frozen=True, slots=True)
class Timeline:
    """The rows of a job."""

    start: datetime
    end: datetime
    """Of an active job a little later than now, so that it does not change with every read."""
    rows: tuple[TimelineRow, ...]
    cuts: tuple[float, ...] = ()
    """The positions at which waits were shortened."""
    shortened: bool = False
    """Whether earlier attempts are missing."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A write that was refused because the attempt had lost its lease."""

    attempt: int
    at: datetime
    outcome: str = ""


SpanT = TypeVar("SpanT", bound=TimelineSpan)


def build_timeline(
    events: Sequence[JobEvent],
    *,
    created_at: datetime,
    now: datetime,
    scheduled_for: datetime | None = None,
    refusals: Iterable[Refusal] = (),
) -> Timeline:
    """Build the timeline from events in order, of which the oldest may be missing."""
    builder = _TimelineBuilder(created_at, scheduled_for, shortened=bool(events) and events[0].event_seq > 1)
    for event in events:
        builder.add(event)
    for refusal in refusals:
        builder.add_refusal(refusal)
    return builder.build(now)


class _TimelineBuilder:
    """The timeline so far. Time never goes back, whatever the clocks of workers say."""

    def __init__(self, created_at: datetime, scheduled_for: datetime | None, *, shortened: bool) -> None:
        self._shortened = shortened
        self._start: datetime | None = None if shortened else created_at
        self._at = created_at
        self._rows: list[TimelineRow] = []
        self._waits: list[WaitSpan] = []
        self._marks: list[TimelineMark] = []
        self._waiting: tuple[WaitKind, datetime, datetime | None] | None = None
        self._run: AttemptSpan | None = None
        self._partials: list[tuple[datetime, int]] = []
        self._over = False
        if not shortened:
            self._wait(WaitKind.DELAYED, scheduled_for)

    def add(self, event: JobEvent) -> None:
        at = self._at = max(self._at, event.occurred_at)
        self._start = self._start or at
        match event.event_type:
            case EventType.STARTED:
                self._begin(event, at)
            case EventType.PARTIAL:
                if self._run is None or self._run.attempt != event.attempt:  # its start is missing
                    self._begin(event, at)
                self._partials.append((at, int(event.payload_json.get("result_seq", 0))))
            case EventType.RETRIED:
                self._end(event, at)
                self._wait(WaitKind.BACKOFF, parse_time(event.payload_json.get("run_at")))
            case EventType.SNOOZED:
                self._end(event, at)
                self._wait(WaitKind.SNOOZED, parse_time(event.payload_json.get("run_at")))
            case EventType.LEASE_LOST:
                self._mark(MarkKind.LEASE_LOST, event, at)
                self._end(event, at)
                self._wait(WaitKind.WAITING)
            case EventType.COMPLETED | EventType.FAILED | EventType.CANCELED:
                self._end(event, at)
                self._finish(at)
            case EventType.DEADLETTERED:
                self._mark(MarkKind.DEAD, event, at)
            case EventType.REPLAYED | EventType.CANCEL_REQUESTED | EventType.RECONCILED:
                self._mark(MarkKind(event.event_type.removeprefix("job.")), event, at)
            case _:
                pass

    def add_refusal(self, refusal: Refusal) -> None:
        """Mark a refused write in the row of its attempt, if the attempt did not end by itself."""
        for index, row in enumerate(self._rows):
            ended_by_others = any(mark.kind in _ENDED_BY_OTHERS for mark in row.marks)
            if row.run is not None and row.run.attempt == refusal.attempt and ended_by_others:
                at = max(refusal.at, row.run.end)
                mark = TimelineMark(MarkKind.REFUSED, at, {"outcome": refusal.outcome})
                run = replace(row.run, ghost=TimelineSpan(row.run.end, at))
                self._rows[index] = replace(row, run=run, marks=(*row.marks, mark))
                self._at = max(self._at, at)

    def build(self, now: datetime) -> Timeline:
        """Return the timeline with all positions."""
        now = max(now, self._at)
        start = self._start or now
        end = self._at if self._over else start + _rounded_up(now - start)
        if self._run is not None:
            self._close_run(end, RUNNING, None)
        elif self._waiting is not None:
            self._close_waits(end, still=True)
        if self._waits or self._marks:
            self._push(None)
        scale = TimeScale(start, end, [(row.run.start, row.run.end) for row in self._rows if row.run])
        rows = tuple(_positioned_row(row, scale) for row in self._rows)
        return Timeline(start, end, rows, scale.cuts, self._shortened)

    def _begin(self, event: JobEvent, at: datetime) -> None:
        if self._run is not None:  # the event that ended it is missing
            self._close_run(at, EventType.LEASE_LOST, None)
        before = self._rows[-1].run if self._rows else None
        self._over = False
        self._close_waits(at)
        self._run = AttemptSpan(at, at, attempt=event.attempt, worker=event.actor_id)
        if before is not None and before.ended == EventType.LEASE_LOST:
            self._mark(MarkKind.TAKEN_OVER, event, at)

    def _end(self, event: JobEvent, at: datetime) -> None:
        if self._run is not None:
            self._close_run(at, event.event_type, event.payload_json)

    def _finish(self, at: datetime) -> None:
        """End the job, also one that only waited, and add marks that came with the end to the last row."""
        self._over = True
        if self._waiting is not None and self._waiting[1] >= at:
            self._waiting = None
        self._close_waits(at)
        if self._waits:
            self._push(None)
        elif self._marks and self._rows:
            last = self._rows[-1]
            self._rows[-1] = replace(last, marks=(*last.marks, *self._marks))
            self._marks = []

    def _wait(self, kind: WaitKind, until: datetime | None = None) -> None:
        self._waiting = (kind, self._at, until)

    def _close_waits(self, at: datetime, *, still: bool = False) -> None:
        """Split the wait: first until a time, then for a worker."""
        if self._waiting is None:
            return
        kind, since, until = self._waiting
        self._waiting = None
        due = since if until is None or kind is WaitKind.WAITING else min(max(until, since), at)
        if due > since:
            self._waits.append(WaitSpan(since, due, kind=kind, open=still and due == at))
        if at > due or (still and not self._waits):
            self._waits.append(WaitSpan(due, at, open=still))

    def _close_run(self, at: datetime, ended: str, detail: dict[str, Any] | None) -> None:
        assert self._run is not None
        results = _grouped(self._run.start, self._partials)
        run = replace(self._run, end=at, ended=ended, detail=detail, results=results)
        self._run, self._partials = None, []
        self._push(run)

    def _push(self, run: AttemptSpan | None) -> None:
        self._rows.append(TimelineRow(tuple(self._waits), run, tuple(self._marks)))
        self._waits, self._marks = [], []

    def _mark(self, kind: MarkKind, event: JobEvent, at: datetime) -> None:
        self._marks.append(TimelineMark(kind, at, event.payload_json))


def _grouped(start: datetime, partials: Sequence[tuple[datetime, int]]) -> tuple[ResultsSpan, ...]:
    """Group partial results into at most `_MAX_RESULT_SPANS` spans."""
    size = -(-len(partials) // _MAX_RESULT_SPANS) or 1
    spans: list[ResultsSpan] = []
    for first in range(0, len(partials), size):
        group = partials[first : first + size]
        end, last_seq = group[-1]
        spans.append(ResultsSpan(start, end, count=len(group), last_seq=last_seq))
        start = end
    return tuple(spans)


def _positioned_row(row: TimelineRow, scale: TimeScale) -> TimelineRow:
    run = row.run
    if run is not None:
        ghost = run.ghost and _positioned(run.ghost, scale)
        results = tuple(_positioned(span, scale) for span in run.results)
        run = replace(_positioned(run, scale), ghost=ghost, results=results)
    waits = tuple(_positioned(wait, scale) for wait in row.waits)
    return TimelineRow(waits, run, tuple(replace(mark, left=scale.at(mark.at)) for mark in row.marks))


def _positioned(span: SpanT, scale: TimeScale) -> SpanT:
    left, width = scale.span(span.start, span.end)
    return replace(span, left=left, width=width)


def _rounded_up(duration: timedelta) -> timedelta:
    """Round up, so that the timeline of an active job changes now and then, not all the time."""
    seconds = max(duration.total_seconds(), 1.0)
    power = 10.0 ** floor(log10(seconds))
    return timedelta(seconds=next(step for step in _ROUND_STEPS if step * power >= seconds) * power)


def parse_time(text: Any) -> datetime | None:
    """Return a time with its zone, as events contain it; None for anything else."""
    try:
        parsed = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return parsed if parsed.tzinfo else None
