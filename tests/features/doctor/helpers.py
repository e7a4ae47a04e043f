"""Run the doctor, and sort its results by verdict."""

from __future__ import annotations

from duly import Duly
from duly.features.doctor.models import CheckResult, CheckVerdict

USUAL = {"durability"}
"""The servers of the tests may lose commits, which is a warning; no other check warns."""


async def examined(app: Duly) -> dict[str, CheckResult]:
    return {line.check: line for line in (await app.doctor.examine()).lines}


def of(lines: dict[str, CheckResult], *verdicts: CheckVerdict) -> set[str]:
    return {name for name, line in lines.items() if line.verdict in verdicts}


def red(lines: dict[str, CheckResult]) -> set[str]:
    """Return the failed checks; only the usual ones may warn, and each of both has a fix."""
    assert of(lines, CheckVerdict.WARN) <= USUAL, lines
    for name in of(lines, CheckVerdict.WARN, CheckVerdict.FAIL):
        assert lines[name].fix, lines[name]
    return of(lines, CheckVerdict.FAIL)


def skipped(lines: dict[str, CheckResult]) -> set[str]:
    return of(lines, CheckVerdict.SKIPPED)
