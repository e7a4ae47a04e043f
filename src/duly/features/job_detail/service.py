"""One job as a page tells of it: its life as a picture, what it left, and the jobs around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from duly.core.freshness import Assessment
from duly.core.job import JobEvent, JobSnapshot
from duly.core.states import EventType
from duly.features.job_detail import store as stories
from duly.features.job_detail.explain import MOST_BEFORE, explain
from duly.features.job_detail.store import KeptLine, KeptPartial, Letter, Relative, Schedule, Story
from duly.features.job_detail.timeline import waterfall
from duly.features.job_detail.timeline_models import Refusal, Waterfall
from duly.features.jobs import store as listing
from duly.jobs import stale_jobs
from duly.jobs.application import App

__all__ = ["JobStory", "KeptLine", "KeptPartial", "Letter", "Relative", "Schedule", "read_story"]
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class JobStory:
    """All that is to be told of a job. What lies in the blobs is not loaded."""

    job: JobSnapshot
    explanation: tuple[str, ...]
    freshness: Assessment
    waterfall: Waterfall
    events: tuple[JobEvent, ...]
    """The last ones, the oldest of them first."""
    more_events: bool
    """Whether there are earlier ones."""
    lines: tuple[KeptLine, ...]
    """The last lines that it logged, attempt by attempt."""
    snapshots: tuple[KeptPartial, ...]
    """The last partial results; the values of those that are compared."""
    relatives: tuple[Relative, ...]
    """The jobs around it; not all of them need be seen by whoever sees this one."""
    letter: Letter | None
    """What the dead letters say of it, if it died."""
    schedule: Schedule | None
    """The schedule that it comes from."""
    payload: dict[str, Any] | None
    """What it was given; None if that lies in the blobs."""
    metadata: dict[str, Any] | None
    scheduled_for: datetime | None


async def read_story(
    app: App, org_id: UUID, job_id: UUID, *, compared: Sequence[int], outside: bool, language: str
) -> JobStory | None:
    """The story of a job; None if this org has none of that id."""
    async with (await app.resources()).database.engine() as conn:
        around = await listing.look_around(conn, org_id, job_id, most=MOST_BEFORE)
        judged = await stale_jobs.read_evidence(conn, [(org_id, job_id)])
    if around is None or not judged:
        return None
    async with app.tenant_session(org_id) as conn:
        found = await stories.read(conn, org_id, job_id, compared=compared)
        if found is None:
            return None
        job, story, events = found
        relatives = await stories.relatives(conn, job, story, around.now)
    return JobStory(
        job=job,
        explanation=explain(job, around, outside=outside, language=language),
        freshness=judged[0].assess(),
        waterfall=_drawn(job, story, events, around.now),
        events=tuple(events[-_SHOWN:]),
        more_events=len(events) > _SHOWN or (events[:1] != [] and events[0].event_seq > 1),
        lines=story.lines,
        snapshots=story.snapshots,
        relatives=tuple(relatives),
        letter=story.letter,
        schedule=story.schedule,
        payload=story.payload if job.request_payload_ref is None else None,
        metadata=story.metadata,
        scheduled_for=story.scheduled_for,
    )


def _drawn(job: JobSnapshot, story: Story, events: Sequence[JobEvent], now: datetime) -> Waterfall:
    refusals = [
        Refusal(line.attempt, line.logged_at, str((line.fields or {}).get("outcome", "")))
        for line in story.refusals
    ]
    told = [event for event in events if event.event_type != EventType.PROGRESSED]
    return waterfall(
        told, created_at=job.created_at, now=now, scheduled_for=story.scheduled_for, refusals=refusals
    )
