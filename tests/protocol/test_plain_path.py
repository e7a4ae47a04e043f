"""The plain path of a claim, explored exhaustively: completions, cancels and the reaper in any order."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache

import pytest

from tests.protocol import plain_path as must
from tests.protocol.explore import Explored, explore, unfinished
from tests.protocol.plain_path import FIRST, Claim, PlainRules, all_ended, moves


@cache
def _explored() -> Explored[Claim]:
    return explore(FIRST, moves(PlainRules()))


def test_no_order_violates_an_invariant_and_every_job_ends_when_the_faults_stop() -> None:
    found = _explored()
    print(f"{len(found.states)} states, {found.moves} steps, {found.depth} deep")
    assert found.counterexample is None, str(found.counterexample)
    assert next(unfinished(found, all_ended), None) is None
    assert len(found.states) > 10_000


def test_jobs_end_on_either_path_and_a_zombie_is_too_late() -> None:
    """A model in which nothing happens would satisfy every invariant."""
    states = _explored().states
    assert any(claim.jobs[0].ended and claim.jobs[1].ended for claim in states)
    assert any(claim.jobs[0].state == "completed" and claim.jobs[1].ended for claim in states)
    assert any(claim.jobs[0].state == "canceled" for claim in states)
    assert any(claim.returned and not claim.exists and claim.jobs[1].attempt == 2 for claim in states)


BROKEN = {
    "a completion does not lock the claim": (PlainRules(completion_locks=False), must.NO_STATE_AND_END),
    "a completion reads the claim by its snapshot": (
        PlainRules(completion_rereads=False),
        must.NO_STATE_AND_END,
    ),
    "a completion does not look at the jobs that left": (
        PlainRules(checks_left_jobs=False),
        must.NO_STATE_AND_END,
    ),
    "a completion writes without a claim": (PlainRules(end_needs_claim=False), must.NO_STATE_AND_END),
    "a job leaves without the lock of its claim": (PlainRules(leaving_locks=False), must.NO_STATE_AND_END),
    "a job leaves by what was read before the lock": (
        PlainRules(leaving_rereads=False),
        must.NO_STATE_AND_END,
    ),
    "a job that leaves gets no started event": (PlainRules(logs_started=False), must.NO_GAPS),
}


def test_every_rule_is_switched_off_once() -> None:
    off = [name for rules, _ in BROKEN.values() for name, holds in asdict(rules).items() if not holds]
    assert sorted(off) == sorted(asdict(PlainRules()))


@pytest.mark.parametrize("name", BROKEN)
def test_a_rule_switched_off_gives_a_counterexample(name: str) -> None:
    rules, broken = BROKEN[name]
    found = explore(FIRST, moves(rules)).counterexample
    assert found is not None
    print(f"{name}\n{found}")
    assert found.broken == broken
