"""The detail of a job: explained with its last attempts and events, or in full as the console shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from duly.core.freshness import Assessment
from duly.core.job import JobEvent, JobSnapshot
from duly.core.states import EventType
from duly.features.job_detail import store
from duly.features.job_detail.explain import explain
from duly.features.job_detail.store import (
    Attempt,
    ChangeMarker,
    JobConditions,
    JobRecord,
    JobRelative,
    PartialResultRow,
    read_change_marker,
)
from duly.features.job_detail.timeline import Timeline, build_timeline
from duly.jobs import stale_jobs
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.worker.job_log import JobLogLine

__all__ = [
    "Attempt",
    "ChangeMarker",
    "FullJobDetail",
    "JobDetail",
    "JobLogLine",
    "PartialResultRow",
    "read_change_marker",
    "read_detail",
    "read_full_detail",
]

_MAX_EVENTS = _MAX_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class JobDetail:
    """A job with its last attempts and events, and the explanation of its status."""

    job: JobSnapshot
    attempts: tuple[Attempt, ...]
    events: tuple[JobEvent, ...]
    explanation: tuple[str, ...]
    freshness: Assessment
    """The freshness of its status, with the evidence."""


@dataclass(frozen=True, slots=True)
class FullJobDetail:
    """A job with everything that the console shows. Values in blobs are not loaded."""

    job: JobSnapshot
    explanation: tuple[str, ...]
    freshness: Assessment
    timeline: Timeline
    events: tuple[JobEvent, ...]
    """The last ones, oldest first."""
    more_events: bool
    """Whether there are earlier ones."""
    relatives: tuple[JobRelative, ...]
    """The jobs around it, also those that a viewer of this job may not see."""
    record: JobRecord

    @property
    def payload(self) -> dict[str, Any] | None:
        """The payload; None if it is stored as a blob."""
        return self.record.payload if self.job.request_payload_ref is None else None


async def read_detail(app: App, org_id: UUID, job_id: UUID, *, for_tenant: bool) -> JobDetail | None:
    """Return the detail of a job; None if the org has no such job."""
    async with app.tenant_session(org_id) as conn:
        job = await job_store.read_job(conn, org_id, job_id)
        attempts = await store.list_last_attempts(conn, org_id, job_id, limit=_MAX_ATTEMPTS)
        events = await store.list_last_events(conn, org_id, job_id, limit=_MAX_EVENTS)
    state = await _read_conditions(app, org_id, job_id)
    if job is None or state is None:
        return None
    conditions, freshness = state
    explanation = explain(job, conditions, for_tenant=for_tenant)
    return JobDetail(job, tuple(attempts), tuple(events), explanation, freshness)


async def read_full_detail(
    app: App, org_id: UUID, job_id: UUID, *, compared: Sequence[int], for_tenant: bool, language: str
) -> FullJobDetail | None:
    """Return the full detail of a job; None if the org has no such job."""
    state = await _read_conditions(app, org_id, job_id)
    if state is None:
        return None
    conditions, freshness = state
    async with app.tenant_session(org_id) as conn:
        stored = await store.read_job_record(conn, org_id, job_id, compared=compared)
        if stored is None:
            return None
        job, record, events = stored
        relatives = await store.list_relatives(conn, job, record, conditions.now)
    return FullJobDetail(
        job=job,
        explanation=explain(job, conditions, for_tenant=for_tenant, language=language),
        freshness=freshness,
        timeline=build_timeline(
            [event for event in events if event.event_type != EventType.PROGRESSED],
            created_at=job.created_at,
            now=conditions.now,
            scheduled_for=record.scheduled_for,
            refusals=record.refusals,
        ),
        events=tuple(events[-_MAX_EVENTS:]),
        more_events=len(events) > _MAX_EVENTS or (events[:1] != [] and events[0].event_seq > 1),
        relatives=tuple(relatives),
        record=record,
    )


async def _read_conditions(app: App, org_id: UUID, job_id: UUID) -> tuple[JobConditions, Assessment] | None:
    """Return the conditions and the freshness of a job, which only the engine can read."""
    async with (await app.resources()).database.engine() as conn:
        conditions = await store.read_conditions(conn, org_id, job_id)
        evidence = await stale_jobs.read_evidence(conn, [(org_id, job_id)])
    return (conditions, evidence[0].assess()) if conditions and evidence else None
