"""One examination, line by line."""

from __future__ import annotations

from duly import Duly
from duly.features.doctor.finding import Line, Verdict

USUAL = {"durability"}
"""The servers of the tests may lose what was committed: that is worth a warning, and nothing else is."""


async def examined(app: Duly) -> dict[str, Line]:
    return {line.check: line for line in (await app.doctor.examine()).lines}


def of(lines: dict[str, Line], *verdicts: Verdict) -> set[str]:
    return {name for name, line in lines.items() if line.verdict in verdicts}


def red(lines: dict[str, Line]) -> set[str]:
    """The lines that failed; those that warn must be the usual ones, and each of both says what to do."""
    assert of(lines, Verdict.WARN) <= USUAL, lines
    for name in of(lines, Verdict.WARN, Verdict.FAIL):
        assert lines[name].fix, lines[name]
    return of(lines, Verdict.FAIL)


def skipped(lines: dict[str, Line]) -> set[str]:
    return of(lines, Verdict.SKIPPED)
