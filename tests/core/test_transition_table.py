"""The transition table has exactly the transitions that are written out here."""

from __future__ import annotations

import pytest

from duly.core.states import HELD, OUTCOMES, TERMINAL, TRANSITIONS, Outcome, Status, Trigger, sources

RULES = """
    -                enqueue     queued
    queued           claim       running
    queued           cancel      canceled
    queued           reconcile   failed
    running,partial  chunk       partial
    running,partial  finish      completed
    running,partial  fail        failed
    running,partial  retry       queued
    running,partial  give_back   queued
    running,partial  lose_lease  queued
    running,partial  cancel      canceled
"""


def expected_transitions() -> dict[tuple[str | None, str], str]:
    rows = [line.split() for line in RULES.strip().splitlines()]
    return {
        (None if source == "-" else source, trigger): target
        for group, trigger, target in rows
        for source in group.split(",")
    }


def targets(source: Status) -> set[Status]:
    return {target for (known, _), target in TRANSITIONS.items() if known is source}


def test_the_table_matches_the_written_rules() -> None:
    assert {
        (source, str(trigger)): str(to) for (source, trigger), to in TRANSITIONS.items()
    } == expected_transitions()


def test_a_terminal_status_has_no_transition() -> None:
    exits = {status: targets(status) for status in ("completed", "failed", "canceled")}
    assert exits == {"completed": set(), "failed": set(), "canceled": set()}


def test_every_active_status_can_fail_and_be_canceled() -> None:
    for status in set(Status) - TERMINAL:
        assert {"failed", "canceled"} <= targets(status)


def test_a_queued_job_never_completes_without_running() -> None:
    assert targets(Status.QUEUED) == {"running", "canceled", "failed"}


def test_only_the_reconciler_fails_a_queued_job() -> None:
    failing = {
        trigger for (source, trigger), to in TRANSITIONS.items() if (source, to) == ("queued", "failed")
    }
    assert failing == {Trigger.RECONCILE}
    assert sources(Trigger.RECONCILE) == {Status.QUEUED}


def test_only_enqueue_creates_a_job() -> None:
    assert [trigger for source, trigger in TRANSITIONS if source is None] == [Trigger.ENQUEUE]
    assert sources(Trigger.ENQUEUE) == {None}


def test_every_status_can_be_reached_from_an_enqueue() -> None:
    reached = {TRANSITIONS[None, Trigger.ENQUEUE]}
    while more := {to for status in reached for to in targets(status)} - reached:
        reached |= more
    assert reached == set(Status)


def test_only_a_held_job_becomes_partial() -> None:
    assert {source for (source, _), to in TRANSITIONS.items() if to is Status.PARTIAL} == HELD


def test_every_trigger_is_used() -> None:
    assert {trigger for _, trigger in TRANSITIONS} == set(Trigger)


@pytest.mark.parametrize(
    ("status", "outcomes"),
    [
        ("queued", {"pending"}),
        ("running", {"pending"}),
        ("partial", {"pending"}),
        ("completed", {"succeeded", "partially_succeeded"}),
        ("failed", {"failed", "blocked", "dead"}),
        ("canceled", {"canceled"}),
    ],
)
def test_each_status_allows_its_outcomes(status: str, outcomes: set[str]) -> None:
    assert OUTCOMES[Status(status)] == outcomes


def test_a_terminal_outcome_determines_the_status() -> None:
    ended = [outcome for status in TERMINAL for outcome in OUTCOMES[status]]
    assert len(ended) == len(set(ended))
    assert set(ended) == set(Outcome) - {Outcome.PENDING}


@pytest.mark.parametrize("status", list(Status))
def test_a_status_is_terminal_exactly_when_it_has_no_transition(status: Status) -> None:
    assert status.terminal is (targets(status) == set())


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        TRANSITIONS[Status.COMPLETED, Trigger.RETRY] = Status.QUEUED  # type: ignore[index]
