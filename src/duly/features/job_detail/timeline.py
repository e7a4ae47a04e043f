"""A job's life as it is drawn: one row for each attempt, with the waits before it and what was noticed.

Long waits are cut short, so that a week in a queue does not hide the second in which the work was done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import floor, log10
from typing import Any, TypeVar

from duly.core.job import JobEvent
from duly.core.states import EventType
from duly.features.job_detail.time_scale import Scale
from duly.features.job_detail.timeline_models import (
    RUNNING,
    Chunks,
    Mark,
    MarkKind,
    Part,
    Refusal,
    Row,
    Run,
    Wait,
    WaitKind,
    Waterfall,
)

P = TypeVar("P", bound=Part)
_MOST_CHUNKS = 40
_OVERRULED = frozenset({MarkKind.LEASE_LOST, MarkKind.RECONCILED})
_STEPS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)


def waterfall(
    events: Sequence[JobEvent],
    *,
    created_at: datetime,
    now: datetime,
    scheduled_for: datetime | None = None,
    refusals: Iterable[Refusal] = (),
) -> Waterfall:
    """Draw it from its events in their order, of which the oldest may be missing."""
    story = _Story(created_at, scheduled_for, shortened=bool(events) and events[0].event_seq > 1)
    for event in events:
        story.tell(event)
    for refusal in refusals:
        story.refuse(refusal)
    return story.drawn(now)


class _Story:
    """What is known so far. Times never go back, whatever the clocks said."""

    def __init__(self, created_at: datetime, scheduled_for: datetime | None, *, shortened: bool) -> None:
        self._shortened = shortened
        self._start: datetime | None = None if shortened else created_at
        self._at = created_at
        self._rows: list[Row] = []
        self._waits: list[Wait] = []
        self._marks: list[Mark] = []
        self._waiting: tuple[WaitKind, datetime, datetime | None] | None = None
        self._run: Run | None = None
        self._partials: list[tuple[datetime, int]] = []
        self._over = False
        if not shortened:
            self._wait(WaitKind.DELAYED, scheduled_for)

    def tell(self, event: JobEvent) -> None:
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
                self._wait(WaitKind.BACKOFF, moment(event.payload_json.get("run_at")))
            case EventType.SNOOZED:
                self._end(event, at)
                self._wait(WaitKind.SNOOZED, moment(event.payload_json.get("run_at")))
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

    def refuse(self, refusal: Refusal) -> None:
        """Put it where its attempt is drawn, if somebody else had ended that."""
        for place, row in enumerate(self._rows):
            overruled = any(mark.kind in _OVERRULED for mark in row.marks)
            if row.run is not None and row.run.attempt == refusal.attempt and overruled:
                at = max(refusal.at, row.run.end)
                mark = Mark(MarkKind.REFUSED, at, {"what": refusal.what})
                run = replace(row.run, ghost=Part(row.run.end, at))
                self._rows[place] = replace(row, run=run, marks=(*row.marks, mark))
                self._at = max(self._at, at)

    def drawn(self, now: datetime) -> Waterfall:
        """All of it, with its places."""
        now = max(now, self._at)
        start = self._start or now
        end = self._at if self._over else start + _rounded(now - start)
        if self._run is not None:
            self._close_run(end, RUNNING, None)
        elif self._waiting is not None:
            self._close_waits(end, still=True)
        if self._waits or self._marks:
            self._push(None)
        scale = Scale(start, end, [(row.run.start, row.run.end) for row in self._rows if row.run])
        rows = tuple(_placed(row, scale) for row in self._rows)
        return Waterfall(start, end, rows, scale.cuts, self._shortened)

    def _begin(self, event: JobEvent, at: datetime) -> None:
        if self._run is not None:  # the event that ended it is missing
            self._close_run(at, EventType.LEASE_LOST, None)
        before = self._rows[-1].run if self._rows else None
        self._over = False
        self._close_waits(at)
        self._run = Run(at, at, attempt=event.attempt, worker=event.actor_id)
        if before is not None and before.ended == EventType.LEASE_LOST:
            self._mark(MarkKind.TAKEN_OVER, event, at)

    def _end(self, event: JobEvent, at: datetime) -> None:
        if self._run is not None:
            self._close_run(at, event.event_type, event.payload_json)

    def _finish(self, at: datetime) -> None:
        """It ended: also what only waited, and marks that came with the end."""
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
        """What it waited for: first for a time, then for a worker."""
        if self._waiting is None:
            return
        kind, since, until = self._waiting
        self._waiting = None
        begins = since if until is None else min(max(until, since), at)
        if kind is WaitKind.WAITING:
            begins = since
        if begins > since:
            self._waits.append(Wait(since, begins, kind=kind, open=still and begins == at))
        if at > begins or still:
            if still and begins == at and self._waits:
                return
            self._waits.append(Wait(begins, at, open=still))

    def _close_run(self, at: datetime, ended: str, detail: dict[str, Any] | None) -> None:
        assert self._run is not None
        chunks = _grouped(self._run.start, self._partials)
        run = replace(self._run, end=at, ended=ended, detail=detail, chunks=chunks)
        self._run, self._partials = None, []
        self._push(run)

    def _push(self, run: Run | None) -> None:
        self._rows.append(Row(tuple(self._waits), run, tuple(self._marks)))
        self._waits, self._marks = [], []

    def _mark(self, kind: MarkKind, event: JobEvent, at: datetime) -> None:
        self._marks.append(Mark(kind, at, event.payload_json))


def _grouped(start: datetime, partials: Sequence[tuple[datetime, int]]) -> tuple[Chunks, ...]:
    """So many at most; of more, each stands for some."""
    each = -(-len(partials) // _MOST_CHUNKS) or 1
    found: list[Chunks] = []
    for first in range(0, len(partials), each):
        some = partials[first : first + each]
        found.append(Chunks(start, some[-1][0], count=len(some), last_seq=some[-1][1]))
        start = some[-1][0]
    return tuple(found)


def _placed(row: Row, scale: Scale) -> Row:
    run = row.run
    if run is not None:
        ghost = run.ghost and _laid(run.ghost, scale)
        chunks = tuple(_laid(one, scale) for one in run.chunks)
        run = replace(_laid(run, scale), ghost=ghost, chunks=chunks)
    waits = tuple(_laid(one, scale) for one in row.waits)
    return Row(waits, run, tuple(replace(mark, left=scale.at(mark.moment)) for mark in row.marks))


def _laid(part: P, scale: Scale) -> P:
    left, width = scale.span(part.start, part.end)
    return replace(part, left=left, width=width)


def _rounded(lasted: timedelta) -> timedelta:
    """A little more than that: the picture of a living job changes now and then, and not all the time."""
    seconds = max(lasted.total_seconds(), 1.0)
    power = 10.0 ** floor(log10(seconds))
    return timedelta(seconds=next(step for step in _STEPS if step * power >= seconds) * power)


def moment(text: Any) -> datetime | None:
    """A time with its zone, as events write it; None for anything else."""
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo else None
