"""The drawn diagram, read back, is the table."""

from __future__ import annotations

import re

from duly.core.states import TRANSITIONS, state_diagram

ARROW = re.compile(r"^ {4}(\S+) --> (\S+?)(?:: (.+))?$")


def arrows() -> list[tuple[str, str, str | None]]:
    lines = state_diagram().splitlines()[1:]
    found = [ARROW.match(line) for line in lines]
    assert all(found), lines
    return [(arrow[1], arrow[2], arrow[3]) for arrow in found if arrow]


def test_it_is_a_state_diagram() -> None:
    assert state_diagram().splitlines()[0] == "stateDiagram-v2"


def test_every_step_of_the_table_is_drawn_and_no_other() -> None:
    read = {
        (None if source == "[*]" else source, trigger): target
        for source, target, label in arrows()
        if label is not None
        for trigger in label.split(", ")
    }
    assert read == dict(TRANSITIONS)


def test_each_pair_of_statuses_has_one_arrow() -> None:
    pairs = [(source, target) for source, target, _ in arrows()]
    assert len(pairs) == len(set(pairs))


def test_the_terminal_statuses_lead_to_the_end() -> None:
    assert [source for source, target, _ in arrows() if target == "[*]"] == [
        "canceled",
        "completed",
        "failed",
    ]
