"""The plan of a bulk action: the lists of jobs that a verb changes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, cast
from uuid import UUID

from duly.core.errors import ContractError
from duly.core.job import Actor
from duly.core.states import Outcome, Status
from duly.features.jobs.filter import JobFilter, JobFilterKeywords, parse_filter
from duly.features.system_jobs import may_change

JOB_TYPE = "duly.bulk"
_TIME_FILTERS = ("created_after", "created_before")


class Verb(StrEnum):
    """What a bulk action does with each job."""

    CANCEL = "cancel"
    """Cancel active jobs."""
    REPLAY = "replay"
    """Run ended jobs again, each as a new job; resolved dead letters are skipped."""
    DISCARD = "discard"
    """Discard open dead letters."""

    def applies_to(self, status: Status) -> bool:
        """Return whether the verb can change a job in this status."""
        match self:
            case Verb.CANCEL:
                return not status.terminal
            case Verb.REPLAY:
                return status.terminal
            case Verb.DISCARD:
                return status is Status.FAILED


def parse_verb(text: str) -> Verb:
    """Return the verb of a name."""
    try:
        return Verb(text)
    except ValueError:
        raise ContractError(
            f"unknown verb {text!r}", field="verb", fix=f"use one of {', '.join(Verb)}"
        ) from None


def applicable_verbs(status: str | None) -> list[Verb]:
    """Return the verbs for jobs of a status, or of all."""
    if status is None:
        return [Verb.CANCEL, Verb.REPLAY]
    return [verb for verb in Verb if verb.applies_to(Status(status))]


def lists_to_change(job_filter: JobFilter, verb: Verb, actor: Actor) -> list[JobFilter]:
    """Return the lists of the jobs that a verb changes. Ended jobs are listed by one status at a time."""
    statuses = tuple(status for status in job_filter.statuses if verb.applies_to(status))
    if verb is Verb.DISCARD:
        if job_filter.outcome not in (None, Outcome.DEAD):
            return []
        job_filter = job_filter._replace(outcome=Outcome.DEAD, open_dead_letter=True)
    else:
        job_filter = job_filter._replace(without_system_jobs=not may_change(actor, JOB_TYPE))
    if not statuses:
        return []
    if job_filter.list.has_any_status or not statuses[0].terminal:
        return [job_filter._replace(statuses=statuses)]
    return [job_filter._replace(statuses=(status,)) for status in statuses]


def filters_to_json(filters: JobFilterKeywords) -> dict[str, Any]:
    """Return filters as JSON values."""
    return {name: _json_value(value) for name, value in filters.items() if value is not None}


def filters_from_json(stored: Mapping[str, Any]) -> JobFilterKeywords:
    """Return filters from JSON values."""
    times = {name: datetime.fromisoformat(text) for name, text in stored.items() if name in _TIME_FILTERS}
    return cast(JobFilterKeywords, {**stored, **times})


def filter_created_before(org_id: UUID | None, filters: JobFilterKeywords, before: datetime) -> JobFilter:
    """Return a filter of jobs that existed before a time: without those that the bulk action creates."""
    until = min(before, filters.get("created_before") or before)
    return parse_filter(org_id, cast(JobFilterKeywords, {**filters, "created_before": until}))


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    return value if isinstance(value, str) else [str(one) for one in value]
