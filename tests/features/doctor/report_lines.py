"""Run the doctor, and sort its results by verdict."""

from __future__ import annotations

from duly import Duly
from duly.features.doctor.models import CheckOutcome, CheckVerdict

USUAL = {"durability"}
"""The servers of the tests may lose commits, which is a warning; no other check warns."""


async def examined(app: Duly) -> dict[str, CheckOutcome]:
    return {line.check: line for line in (await app.doctor.examine()).lines}


def of(lines: dict[str, CheckOutcome], *verdicts: CheckVerdict) -> set[str]:
    return {name for name, line in lines.items() if line.verdict in verdicts}


def red(lines: dict[str, CheckOutcome]) -> set[str]:
    """Return the failed checks; only the usual ones may warn, and each of both has a fix."""
    assert of(lines, CheckVerdict.WARN) <= USUAL, lines
    for name in of(lines, CheckVerdict.WARN, CheckVerdict.FAIL):
        assert lines[name].fix, lines[name]
    return of(lines, CheckVerdict.FAIL)


def skipped(lines: dict[str, CheckOutcome]) -> set[str]:
    return of(lines, CheckVerdict.SKIPPED)
