"""The results of checks, and the report of all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class CheckVerdict(StrEnum):
    """The verdict of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIPPED = "skipped"


class CheckProblem(NamedTuple):
    """One problem that a check found, and its fix."""

    message: str
    fix: str
    fails: bool = True
    """Whether it fails the check; else it is a warning."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The result of a check."""

    verdict: CheckVerdict
    message: str
    fix: str | None = None
    blocks_database: bool = False
    """Whether no further check of the database can run."""
    check: str = ""
    """The name of the check."""


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """The results of all checks, in order."""

    lines: tuple[CheckOutcome, ...]

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return self.count(CheckVerdict.FAIL) == 0

    def count(self, verdict: CheckVerdict) -> int:
        """Return the number of checks with this verdict."""
        return sum(line.verdict is verdict for line in self.lines)


def passed(message: str) -> CheckOutcome:
    """Return the result of a check without problems."""
    return CheckOutcome(CheckVerdict.OK, message)


def failed(message: str, fix: str, *, blocks_database: bool = False) -> CheckOutcome:
    """Return the result of a check that failed."""
    return CheckOutcome(CheckVerdict.FAIL, message, fix, blocks_database)


def skipped(message: str) -> CheckOutcome:
    """Return the result of a check that could not run."""
    return CheckOutcome(CheckVerdict.SKIPPED, message)


def result_of(problems: Iterable[CheckProblem], ok_message: str) -> CheckOutcome:
    """Return one result for all problems, as bad as the worst; without problems, the check passed."""
    found = list(problems)
    if not found:
        return passed(ok_message)
    verdict = CheckVerdict.FAIL if any(problem.fails for problem in found) else CheckVerdict.WARN
    fixes = dict.fromkeys(problem.fix for problem in found)
    return CheckOutcome(verdict, "; ".join(problem.message for problem in found), "; ".join(fixes))
