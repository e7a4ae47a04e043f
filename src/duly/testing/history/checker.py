"""The parts of the checker: a history indexed by job, the findings of a promise, the result of a check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, wraps
from typing import Any
from uuid import UUID

from duly.testing.history.records import History, PromiseViolation

Key = tuple[UUID, UUID]
"""Org and job."""
Row = dict[str, Any]
_MAX_PRINTED = 5


@dataclass(slots=True)
class JobHistory:
    """One job: its final row and its events, ordered by their number."""

    key: Key
    row: Row | None = None
    events: list[Row] = field(default_factory=list)

    @property
    def status(self) -> str | None:
        """The final status."""
        return self.row["status"] if self.row else None


class HistoryIndex:
    """A history, grouped by job once for all promises."""

    def __init__(self, history: History) -> None:
        self.history = history

    @cached_property
    def jobs(self) -> dict[Key, JobHistory]:
        """Every job that has a row or an event."""
        jobs: dict[Key, JobHistory] = {}
        for row in self.history.jobs:
            key = key_of(row)
            jobs[key] = JobHistory(key, row)
        for event in self.history.events:
            key = key_of(event)
            job = jobs.get(key)
            if job is None:
                job = jobs[key] = JobHistory(key)
            job.events.append(event)
        for job in jobs.values():
            job.events.sort(key=_seq)
        return jobs

    @property
    def stored_jobs(self) -> Iterator[tuple[JobHistory, Row]]:
        """Every job that has a row, with the row."""
        return ((job, job.row) for job in self.jobs.values() if job.row is not None)

    def job(self, key: Key) -> JobHistory:
        """Return what is known of a job; an empty history if nothing is."""
        return self.jobs.get(key) or JobHistory(key)

    @cached_property
    def ended_at(self) -> datetime | None:
        """When the run was quiet: as recorded, or else at the last event."""
        last = max((event["occurred_at"] for event in self.history.events), default=None)
        return self.history.ended_at or last

    def is_not_due(self, row: Row) -> bool:
        """Whether a job is queued for a time after the end of the run."""
        return row["status"] == "queued" and self.ended_at is not None and bool(row["run_at"] > self.ended_at)


class PromiseFindings(list[PromiseViolation]):
    """The violations of one promise, and the number of facts that were examined."""

    def __init__(self, promise: str, description: str) -> None:
        super().__init__()
        self.promise = promise
        self.description = description
        self.facts = 0

    def report(self, message: str, key: Key | None = None, **evidence: Any) -> None:
        """Add a violation with its evidence."""
        org_id, job_id = key or (None, None)
        self.append(PromiseViolation(self.promise, message, org_id, job_id, evidence))


Promise = Callable[[History | HistoryIndex], PromiseFindings]


def promise(examine: Callable[[HistoryIndex, PromiseFindings], None]) -> Promise:
    """Make a promise of a function that examines it; the first line of its docstring describes it."""

    @wraps(examine)
    def checked(history: History | HistoryIndex) -> PromiseFindings:
        description = (examine.__doc__ or "").partition("\n")[0].rstrip(".")
        findings = PromiseFindings(examine.__name__.upper(), description)
        examine(history if isinstance(history, HistoryIndex) else HistoryIndex(history), findings)
        return findings

    return checked


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The findings of every promise. A promise without facts does not hold: there is no evidence."""

    findings: tuple[PromiseFindings, ...]

    @property
    def holds(self) -> bool:
        """Whether no promise is broken."""
        return not any(self.findings)

    @property
    def violations(self) -> list[PromiseViolation]:
        """The violations of all promises."""
        return [violation for findings in self.findings for violation in findings]

    @property
    def broken(self) -> set[str]:
        """The promises that do not hold."""
        return {findings.promise for findings in self.findings if findings}

    @property
    def without_evidence(self) -> set[str]:
        """The promises about which the history contains no fact."""
        return {findings.promise for findings in self.findings if not findings and not findings.facts}

    def of(self, promise: str) -> PromiseFindings:
        """Return the findings of one promise."""
        return next(findings for findings in self.findings if findings.promise == promise)

    def table(self) -> str:
        """Return one line per promise, then the violations."""
        width = max(len(findings.description) for findings in self.findings)
        lines = [f"{'':<4} {'promise':<{width}}  {'checked':>9}  violations"]
        for findings in self.findings:
            count = f"{len(findings)}" if findings or findings.facts else "no evidence"
            lines.append(
                f"{findings.promise:<4} {findings.description:<{width}}  {findings.facts:>9,}  {count}"
            )
        return "\n".join([*lines, *self._violation_lines()])

    def _violation_lines(self) -> Iterator[str]:
        for findings in self.findings:
            if findings:
                yield ""
                yield from map(str, findings[:_MAX_PRINTED])
                if len(findings) > _MAX_PRINTED:
                    yield f"{findings.promise}: and {len(findings) - _MAX_PRINTED} more"


def key_of(row: Row) -> Key:
    """Return the key of the job that a row belongs to."""
    return (row["org_id"], row["job_id"])


def _seq(event: Row) -> int:
    return event["event_seq"]  # type: ignore[no-any-return]
