"""The state diagram shows exactly the transitions of the table."""

from __future__ import annotations

import re

from duly.core.states import TRANSITIONS, state_diagram

ARROW = re.compile(r"^ {4}(\S+) --> (\S+?)(?:: (.+))?$")


def arrows() -> list[tuple[str, str, str | None]]:
    lines = state_diagram().splitlines()[1:]
    matches = [ARROW.match(line) for line in lines]
    assert all(matches), lines
    return [(arrow[1], arrow[2], arrow[3]) for arrow in matches if arrow]


def test_the_output_is_a_mermaid_state_diagram() -> None:
    assert state_diagram().splitlines()[0] == "stateDiagram-v2"


def test_the_diagram_has_exactly_the_transitions_of_the_table() -> None:
    drawn = {
        (None if source == "[*]" else source, trigger): target
        for source, target, label in arrows()
        if label is not None
        for trigger in label.split(", ")
    }
    assert drawn == dict(TRANSITIONS)


def test_each_pair_of_statuses_has_one_arrow() -> None:
    pairs = [(source, target) for source, target, _ in arrows()]
    assert len(pairs) == len(set(pairs))


def test_only_the_terminal_statuses_lead_to_the_end() -> None:
    assert [source for source, target, _ in arrows() if target == "[*]"] == [
        "canceled",
        "completed",
        "failed",
    ]
