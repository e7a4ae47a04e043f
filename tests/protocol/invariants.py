"""The invariants of every step and every state, whatever faults happen."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from duly.core.states import OUTCOMES, TERMINAL_EVENT, TRANSITIONS, EventType, Status, Trigger
from tests.protocol.explore import Move
from tests.protocol.model import Job, Pulse, Scope, Step, World
from tests.protocol.rows import EVERY_RULE, Row, Write
from tests.protocol.steps import steps
from tests.protocol.symmetry import alike

_ENDS = frozenset(TERMINAL_EVENT.values())

CANCELED_NEVER_STARTS = "canceled while queued never starts"
NO_OLDER_WRITER = "no write of an older attempt is accepted"
TERMINAL_FOR_EVER = "terminal is for ever"
IN_THE_TABLE = "each step is in the table"
ONE_TERMINAL_EVENT = "exactly one terminal event, the last"
NO_GAPS = "event_seq has no gaps"
NOTHING_LOST = "progress and partials are never lost"
CANCEL_WINS = "a requested cancel never becomes a retry"
ONLY_SILENT_LOSE = "only a silent worker loses its jobs"
WITHIN_MAXIMUM = "attempts stay within the maximum, crashed ones counted"
ONE_COMPLETION = "one final result, iff completed"
EFFECT_ONCE = "the transactional effect happens exactly once, iff completed"
FITTING_OUTCOME = "the outcome is one of its status"
ACTED = "completed means that the effect outside was made"

# In this order: the first broken one is named.
AT_A_WRITE: dict[str, Callable[[Row, Write], bool]] = {
    CANCELED_NEVER_STARTS: lambda b, w: not (w.trigger is Trigger.CLAIM and b.status is Status.CANCELED),
    NO_OLDER_WRITER: lambda b, w: w.attempt is None or w.attempt == b.attempt,
    TERMINAL_FOR_EVER: lambda b, w: b.status is None or not b.status.terminal,
    IN_THE_TABLE: lambda b, w: (
        w.row.status is (TRANSITIONS.get((b.status, w.trigger)) if w.trigger else b.status)
    ),
    CANCEL_WINS: lambda b, w: not (b.cancel and w.row.status is Status.QUEUED),
    ONE_TERMINAL_EVENT: lambda b, w: _ends_well(w),
    NO_GAPS: lambda b, w: w.row.event_seq == b.event_seq + len(w.events),
    FITTING_OUTCOME: lambda b, w: w.row.status is not None and w.row.outcome in OUTCOMES[w.row.status],
    NOTHING_LOST: lambda b, w: w.row.partials >= b.partials and w.row.progress >= b.progress,
}


def _ends_well(write: Write) -> bool:
    """The terminal event comes with the terminal status, and nothing follows it."""
    status = write.row.status
    ends = [event for event in write.events if event in _ENDS]
    if status is None or not status.terminal:
        return not ends
    return ends == [TERMINAL_EVENT[status]] and write.events[-1] in _ENDS


def _in_a_state(job: Job, scope: Scope) -> Iterator[str]:
    completed = job.row.status is Status.COMPLETED
    if job.starts - job.row.returned > scope.max_attempts:
        yield WITHIN_MAXIMUM
    if job.row.finals != completed:
        yield ONE_COMPLETION
    if job.effects != (completed and scope.transactional):
        yield EFFECT_ONCE


def _between(before: World, step: Step, scope: Scope) -> Iterator[str]:
    if step.write is None:
        return
    if scope.outside and step.write.trigger is Trigger.FINISH and not before.jobs[step.job].outside:
        yield ACTED
    if step.reaper and EventType.LEASE_LOST in step.write.events:
        holder = before.jobs[step.job].row.holder
        if holder is not None and holder >= 0 and before.workers[holder].pulse is Pulse.BEATING:
            yield ONLY_SILENT_LOSE


def broken(before: World, step: Step, scope: Scope) -> str | None:
    """Return the first invariant that this step violates."""
    if step.write is not None:
        row = before.jobs[step.job].row
        for name, holds in AT_A_WRITE.items():
            if not holds(row, step.write):
                return name
    for name in _between(before, step, scope):
        return name
    for job in step.world.jobs:
        for name in _in_a_state(job, scope):
            return name
    return None


def moves(scope: Scope, *, merged: bool = True) -> Callable[[World], Iterator[Move[World]]]:
    """Yield the moves of a state, each with its verdict."""
    merge = alike if merged and scope.rules == EVERY_RULE else _as_it_is

    def of(world: World) -> Iterator[Move[World]]:
        for step in steps(world, scope):
            verdict = broken(world, step, scope)
            yield Move(step.label, step.world if verdict else merge(step.world), verdict, step.fair)

    return of


def _as_it_is(world: World) -> World:
    return world


def all_over(world: World) -> bool:
    """Whether every job has ended."""
    return all(job.row.status is not None and job.row.status.terminal for job in world.jobs)
