"""What a check comes to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """How it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIPPED = "skipped"


class Complaint(NamedTuple):
    """One thing that is not as it should be, and what to do about it."""

    verdict: Verdict
    seen: str
    fix: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check saw."""

    verdict: Verdict
    seen: str
    fix: str | None = None
    stops: bool = False
    """Whether nothing else of the database can be looked at."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the report."""

    check: str
    verdict: Verdict
    seen: str
    fix: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """All lines."""

    lines: tuple[Line, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return self.count(Verdict.FAIL) == 0

    def count(self, verdict: Verdict) -> int:
        """How many lines are of this verdict."""
        return sum(line.verdict is verdict for line in self.lines)


def fine(seen: str) -> Finding:
    """Nothing to complain of."""
    return Finding(Verdict.OK, seen)


def failed(seen: str, fix: str, *, stops: bool = False) -> Finding:
    """It does not work, or not safely."""
    return Finding(Verdict.FAIL, seen, fix, stops)


def skipped(why: str) -> Finding:
    """It could not be looked at."""
    return Finding(Verdict.SKIPPED, why)


def judged(complaints: Iterable[Complaint], otherwise: str) -> Finding:
    """All complaints in one finding, as bad as the worst of them; without any, all is well."""
    found = list(complaints)
    if not found:
        return fine(otherwise)
    worst = Verdict.FAIL if any(one.verdict is Verdict.FAIL for one in found) else Verdict.WARN
    fixes = dict.fromkeys(one.fix for one in found)
    return Finding(worst, "; ".join(one.seen for one in found), "; ".join(fixes))
