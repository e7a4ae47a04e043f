"""The filter of a job list: its keywords, checked, and the list that an index serves for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from math import isfinite
from typing import Any, NamedTuple, TypedDict, TypeVar
from uuid import UUID

from duly.core.errors import ContractError
from duly.core.freshness import Freshness
from duly.core.job import JobSnapshot
from duly.core.payload import payload_conditions
from duly.core.states import OUTCOMES, Outcome, Status
from duly.jobs.request_context import checked_text

E = TypeVar("E", bound=StrEnum)
Scalar = str | int | float | bool | None
MAX_JOB_IDS = 500
_MAX_METADATA_KEYS = 10
_ANY_STATUS = tuple(Status)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_CLOCK_SKEW = 60_000
"""An id contains the milliseconds of the submitter's clock, `created_at` is by the database's clock."""
_MIN_JOB_ID = UUID(int=0)
_MAX_ID_MILLISECONDS = 2**48 - 1


class JobFilterKeywords(TypedDict, total=False):
    """The filters of a job list; a filter that is missing or None matches every job."""

    status: Status | str | None
    outcome: Outcome | str | None
    job_type: str | None
    """A name, or a prefix: `report.*`."""
    queue: str | None
    subject_id: str | None
    freshness: Freshness | str | None
    """The freshness of active jobs; a queue or a worker holds them."""
    error_code: str | None
    fingerprint: str | None
    """The fingerprint of a group of dead letters."""
    created_after: datetime | None
    """Inclusive."""
    created_before: datetime | None
    """Exclusive."""
    metadata: Mapping[str, Scalar] | None
    """Keys and values, compared as text."""
    payload: Mapping[str, Scalar] | None
    """Paths and scalar values, compared as text: `{"region": "DE", "items.0.sku": "X"}`."""
    job_ids: Sequence[UUID | str] | None
    """Only these jobs; in lists of all orgs each as `org_id/job_id`."""


class JobList(StrEnum):
    """The lists that an index serves. The values are the statements of one org, below `jobs/`."""

    KEYS = "keys"
    """Jobs by id; without a statement."""
    BY_SUBJECT = "list_by_subject"
    BY_FINGERPRINT = "list_by_fingerprint"
    ALL = "list"
    ENDED = "list_ended"
    ACTIVE = "list_active"

    @property
    def has_any_status(self) -> bool:
        """Whether the list contains jobs of other statuses than those of the filter."""
        return self in (JobList.KEYS, JobList.BY_SUBJECT, JobList.BY_FINGERPRINT)


class JobCursor(NamedTuple):
    """The position of a job in a list: by its id, or by the time at which it ended."""

    at: datetime | None
    job_id: UUID
    org_id: UUID | None = None
    scan_key: str = ""
    """The position in a list of all orgs where time and id do not suffice; without spaces."""


NEWEST = JobCursor(datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))


class JobFilter(NamedTuple):
    """The jobs of an org, or of all orgs, that match; None matches every job."""

    org_id: UUID | None
    statuses: tuple[Status, ...] = _ANY_STATUS
    """All statuses, active ones, or one that is final. Empty if no job can match."""
    outcome: Outcome | None = None
    """None if the statuses imply it."""
    job_type: str | None = None
    queue: str | None = None
    subject_id: str | None = None
    freshness: Freshness | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    metadata: str | None = None
    """JSON: keys and values."""
    type_prefix: str | None = None
    payload: str | None = None
    """JSON: paths and values."""
    error_code: str | None = None
    fingerprint: str | None = None
    open_dead_letter: bool = False
    """Whether the job must have an unresolved dead letter."""
    without_system_jobs: bool = False
    keys: tuple[tuple[UUID, UUID], ...] | None = None
    """Only these jobs, as org and job."""

    @property
    def single_org(self) -> UUID:
        """The org of a filter that is not about all orgs."""
        assert self.org_id is not None
        return self.org_id

    @property
    def list(self) -> JobList:
        """The list that contains the jobs."""
        if self.keys is not None:
            return JobList.KEYS
        if self.subject_id is not None and self.org_id is not None:
            return JobList.BY_SUBJECT
        if self.fingerprint is not None:
            return JobList.BY_FINGERPRINT
        if self.statuses == _ANY_STATUS:
            return JobList.ALL
        return JobList.ENDED if self.statuses[0].terminal else JobList.ACTIVE

    @property
    def needs_engine(self) -> bool:
        """Whether the list needs an engine session: tenants may not read queues, claims and workers."""
        return self.org_id is None or self.list is JobList.ACTIVE or self.freshness is not None

    @property
    def scans_events(self) -> bool:
        """Whether the jobs are found among the events of all orgs, most of which are about other jobs."""
        is_completed = self.list is JobList.ENDED and self.statuses == (Status.COMPLETED,)
        return self.org_id is None and (self.list is JobList.ALL or is_completed)

    @property
    def needs_match(self) -> bool:
        """Whether the list may contain jobs that do not match."""
        values = (
            *(self.outcome, self.job_type, self.type_prefix, self.queue, self.created_after),
            *(self.created_before, self.metadata, self.payload, self.error_code),
        )
        return (
            self._matches_status
            or self.without_system_jobs
            or self.open_dead_letter
            or (self.fingerprint is not None and self.list is not JobList.BY_FINGERPRINT)
            or (self.subject_id is not None and self.list is not JobList.BY_SUBJECT)
            or any(value is not None for value in values)
        )

    @property
    def _matches_status(self) -> bool:
        return self.list.has_any_status and self.statuses != _ANY_STATUS

    @property
    def digest(self) -> str:
        """The digest by which a cursor recognises its list."""
        return hashlib.sha256(repr(tuple(self)).encode()).hexdigest()[:8]

    def matches_state(self, job: JobSnapshot) -> bool:
        """Return whether the current status and outcome of a job match."""
        return job.status in self.statuses and self.outcome in (None, job.outcome)

    def match_values(self) -> dict[str, Any]:
        """Return the values of the statement that matches jobs."""
        return {
            **self._asdict(),
            "statuses": list(self.statuses),
            "any_status": not self._matches_status,
            "read_state": self._matches_status or self.outcome is not None or self.error_code is not None,
            "read_dead_letter": self.open_dead_letter or self.fingerprint is not None,
        }

    def list_values(self, after: JobCursor) -> dict[str, Any]:
        """Return the values of the statement that lists the jobs after a cursor.

        Lists in the order of ids are bounded by the times of creation that the ids contain.
        """
        by_end = self.list in (JobList.ENDED, JobList.BY_FINGERPRINT)
        latest = None if by_end else self.created_before
        skew = _MAX_CLOCK_SKEW
        return {
            **self._asdict(),
            "statuses": list(self.statuses),
            "status": self.statuses[0],
            "first_job": _MIN_JOB_ID if self.created_after is None else min_id_at(self.created_after, -skew),
            "before_job": after.job_id if latest is None else min(after.job_id, min_id_at(latest, skew)),
            "before_at": after.at,
        }


def min_id_at(at: datetime, shift: int = 0) -> UUID:
    """Return the smallest id of a millisecond, shifted by some milliseconds."""
    milliseconds = (at - _EPOCH) // timedelta(milliseconds=1) + shift
    return UUID(int=min(max(milliseconds, 0), _MAX_ID_MILLISECONDS) << 80)


def parse_filter(org_id: UUID | None, keywords: JobFilterKeywords) -> JobFilter:
    """Check the keywords of a filter; raise for the first that is invalid."""
    outcome = _member("outcome", Outcome, keywords.get("outcome"))
    status = _member("status", Status, keywords.get("status"))
    freshness = _member("freshness", Freshness, keywords.get("freshness"))
    statuses = tuple(
        one for one in Status if status in (None, one) and (outcome is None or outcome in OUTCOMES[one])
    )
    if freshness is not None:
        statuses = _active_statuses(statuses, freshness)
    job_type = checked_text("job_type", keywords.get("job_type"))
    is_prefix = job_type is not None and job_type.endswith("*")
    return JobFilter(
        org_id,
        statuses,
        None if outcome and all(OUTCOMES[one] == {outcome} for one in statuses) else outcome,
        job_type=None if is_prefix else job_type,
        type_prefix=job_type[:-1] if job_type and is_prefix else None,
        queue=checked_text("queue", keywords.get("queue")),
        subject_id=checked_text("subject_id", keywords.get("subject_id")),
        freshness=freshness,
        created_after=_time("created_after", keywords.get("created_after")),
        created_before=_time("created_before", keywords.get("created_before")),
        metadata=_metadata(keywords.get("metadata")),
        payload=_payload(keywords.get("payload")),
        error_code=checked_text("error_code", keywords.get("error_code")),
        fingerprint=checked_text("fingerprint", keywords.get("fingerprint")),
        keys=_keys(org_id, keywords.get("job_ids")),
    )


def _active_statuses(statuses: tuple[Status, ...], freshness: Freshness) -> tuple[Status, ...]:
    active = tuple(status for status in statuses if not status.terminal)
    if freshness is Freshness.TERMINAL or (statuses and not active):
        raise ContractError(
            "only active jobs have a freshness",
            field="freshness",
            fix="use fresh, likely_stale or unknown, with an active status or without a status",
        )
    return active


def _member(field: str, kind: type[E], value: str | None) -> E | None:
    try:
        return None if value is None else kind(value)
    except ValueError:
        raise ContractError(
            f"unknown {field} {value!r}", field=field, fix=f"use one of {', '.join(kind)}"
        ) from None


def _time(field: str, at: Any) -> datetime | None:
    if at is None or (isinstance(at, datetime) and at.tzinfo is not None):
        return at
    raise ContractError(f"{at!r} is not a time with a zone", field=field, fix="use datetime(..., tzinfo=UTC)")


def _metadata(metadata: Mapping[str, Any] | None) -> str | None:
    if not metadata:
        return None
    if len(metadata) > _MAX_METADATA_KEYS:
        raise ContractError(
            f"{len(metadata)} keys are too many", field="metadata", fix=f"use up to {_MAX_METADATA_KEYS}"
        )
    for name, value in metadata.items():
        checked_text("metadata", name)
        if not isinstance(value, Scalar) or (isinstance(value, float) and not isfinite(value)):
            raise ContractError("not a scalar", field=f"metadata.{name}", fix="use a text or a number")
        if isinstance(value, str) and value:
            checked_text(f"metadata.{name}", value)
    return json.dumps(dict(metadata), sort_keys=True)


def _payload(payload: Mapping[str, Any] | None) -> str | None:
    if not payload:
        return None
    return json.dumps([{"path": one.path, "value": one.value} for one in payload_conditions(payload)])


def _keys(org_id: UUID | None, job_ids: Sequence[UUID | str] | None) -> tuple[tuple[UUID, UUID], ...] | None:
    if job_ids is None:
        return None
    if isinstance(job_ids, str) or len(job_ids) > MAX_JOB_IDS:
        raise ContractError(
            f"not a list of up to {MAX_JOB_IDS} ids", field="job_ids", fix="use other filters for more jobs"
        )
    return tuple(sorted({_key(org_id, str(job_id)) for job_id in job_ids}))


def _key(org_id: UUID | None, text: str) -> tuple[UUID, UUID]:
    org, _, job = text.rpartition("/")
    try:
        if bool(org) == (org_id is None):
            return org_id or UUID(org), UUID(job)
    except ValueError:
        pass
    fix = "write each as its id" if org_id else "write each as org_id/job_id"
    raise ContractError(f"invalid job id {text[:80]!r}", field="job_ids", fix=fix)
