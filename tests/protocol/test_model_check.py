"""Leases, fencing and retries, explored exhaustively: no violation is reachable, and every job ends."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import cache

import pytest

from duly.core.states import Status
from tests.protocol import invariants as must
from tests.protocol.explore import Counterexample, Explored, Move, explore, unfinished
from tests.protocol.invariants import all_over, moves
from tests.protocol.model import Pulse, Scope, Worker, World
from tests.protocol.rows import Rules
from tests.protocol.symmetry import alike

_QUIET = Scope(
    outside=False,
    drains=False,
    chunks=0,
    pauses=False,
    lost_answers=False,
    restarts=False,
    horizons=False,
)
"""Only crashes and cancels."""

SCOPES: dict[str, tuple[Scope, int]] = {
    "workers are killed, sleep and come back": (replace(_QUIET, pauses=True, chunks=1), 20_000),
    "answers get lost, the database restarts": (Scope(workers=1, drains=False, outside=False), 20_000),
    "three attempts": (replace(_QUIET, pauses=True, max_attempts=3), 18_000),
    "two reapers at once, and a horizon": (
        replace(_QUIET, pauses=True, reapers=2, restarts=True, horizons=True, give_backs=0),
        10_000,
    ),
    "two jobs": (
        replace(_QUIET, jobs=2, lost_answers=True, cancels=False, max_attempts=1),
        8_000,
    ),
    "handlers without a transaction": (
        replace(_QUIET, transactional=False, outside=True, chunks=1, lost_answers=True),
        4_000,
    ),
    "progress, and attempts given back": (
        replace(_QUIET, workers=1, progress=True, chunks=2, max_attempts=3, give_backs=2, drains=True),
        600,
    ),
}
"""The models and their minimum number of states: with fewer, something can no longer happen."""


@cache
def _explored(name: str) -> Explored[World]:
    scope, _ = SCOPES[name]
    return explore(scope.first, moves(scope), limit=300_000)


@pytest.mark.parametrize("name", SCOPES)
def test_no_model_violates_an_invariant_and_every_job_ends_when_the_faults_stop(name: str) -> None:
    found, at_least = _explored(name), SCOPES[name][1]
    print(f"{name}: {len(found.states)} worlds, {found.moves} steps, {found.depth} deep")
    assert found.counterexample is None, str(found.counterexample)
    assert next(unfinished(found, all_over), None) is None
    assert len(found.states) >= at_least


def test_every_kind_of_step_occurs_in_some_model() -> None:
    """A model without faults would satisfy every invariant."""
    worlds = _explored("workers are killed, sleep and come back").states
    assert {job.row.status for world in worlds for job in world.jobs} == {None, *Status}
    assert {worker.pulse for world in worlds for worker in world.workers} == set(Pulse)
    assert any(_zombies(world) for world in worlds)
    assert any(len(world.looks) == 2 for world in _explored("two reapers at once, and a horizon").states)
    assert any(late.effect for world in _explored("two jobs").states for late in world.flying)


def _zombies(world: World) -> list[Worker]:
    """Return workers that continue a job that another attempt has taken over."""
    [job] = world.jobs
    return [w for w in world.workers if w.grip and w.grip.open and w.grip.attempt < job.row.attempt]


def test_a_model_without_reapers_is_reported_as_stuck() -> None:
    scope = replace(_QUIET, reapers=0)
    found = explore(scope.first, moves(scope, merged=False))
    stuck = next(unfinished(found, all_over))
    print(stuck)
    assert stuck.labels == ["enqueue job 0", "worker 0 claims job 0", "worker 0 is killed, another starts"]


def test_a_cycle_is_found() -> None:
    found = explore(0, lambda n: [Move("on", (n + 1) % 3, fair=True)])
    assert next(unfinished(found, lambda n: n == 2)).broken == "may go on for ever"


def test_symmetry_reduction_loses_no_state() -> None:
    scope = replace(_QUIET, pauses=True, max_attempts=1, give_backs=0)
    merged, single = (explore(scope.first, moves(scope, merged=merged)) for merged in (True, False))
    assert len(merged.states) < len(single.states)
    assert {alike(world) for world in single.states} == set(merged.states)
    assert next(unfinished(single, all_over), None) is None


_SMALL = replace(_QUIET, pauses=True, chunks=1)
_NO_ANSWERS = replace(_QUIET, lost_answers=True)

BROKEN: dict[str, tuple[Rules, Scope, str]] = {
    "the fence is dropped": (Rules(fence=False), _SMALL, must.NO_OLDER_WRITER),
    "the status is not checked": (Rules(status=False), _NO_ANSWERS, must.IN_THE_TABLE),
    "a claim does not look at the status": (Rules(claim_status=False), _SMALL, must.CANCELED_NEVER_STARTS),
    "the attempt is counted at the failure": (
        Rules(attempt_in_claim=False),
        replace(_SMALL, give_backs=0),
        must.WITHIN_MAXIMUM,
    ),
    "the reaper has no fence": (Rules(reaper_fence=False), _SMALL, must.NO_OLDER_WRITER),
    "a job is failed for an earlier wait": (
        Rules(waiting_fence=False),
        replace(_QUIET, horizons=True),
        must.NO_OLDER_WRITER,
    ),
    "a zombie's heartbeat is accepted": (Rules(lost_for_good=False), _SMALL, must.ONLY_SILENT_LOSE),
    "settled although canceled": (Rules(cancel_wins=False), _SMALL, must.CANCEL_WINS),
    "finished before the commit": (Rules(effect_with_finish=False), _SMALL, must.EFFECT_ONCE),
    "events counted as they were decided": (Rules(numbers_what_it_writes=False), _SMALL, must.NO_GAPS),
    "a new attempt forgets the partials": (Rules(keeps_partials=False), _SMALL, must.NOTHING_LOST),
}


def test_every_rule_is_switched_off_once() -> None:
    off = [name for rules, *_ in BROKEN.values() for name, holds in asdict(rules).items() if not holds]
    assert sorted(off) == sorted(asdict(Rules()))


@pytest.mark.parametrize("name", BROKEN)
def test_a_rule_switched_off_gives_the_shortest_counterexample(name: str) -> None:
    rules, around, broken = BROKEN[name]
    scope = replace(around, rules=rules)
    found = explore(scope.first, moves(scope), limit=200_000).counterexample
    assert found is not None
    print(f"{name}\n{found}")
    assert found.broken == broken
    assert _holds_up_to_the_last_step(found, scope)


def _holds_up_to_the_last_step(found: Counterexample[World], scope: Scope) -> bool:
    """The trace is possible, and only its last step violates an invariant."""
    world = scope.first
    *before, last = found.trace
    for label, after in before:
        assert any(m.label == label and m.state == after and not m.broken for m in moves(scope)(world))
        world = after
    return any(m.label == last[0] and m.broken == found.broken for m in moves(scope)(world))
