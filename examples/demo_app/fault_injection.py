"""Killing a worker that holds a job, or freezing it until another has taken over; and what became of it."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from duly import Duly, JobSnapshot
from duly.core.errors import Conflict, DulyError
from duly.core.states import EventType
from duly.features.jobs.service import JobDetail
from duly.worker.job_log import REFUSED_LINE_SEQ

from .crew import Crew, Member
from .people import ORGS
from .reports import LONG

How = Literal["kill", "freeze"]
_ENOUGH = 50.0
"""Percent: a job that is further than that may have ended before anybody has seen anything."""
_PATIENCE, _PAUSE, _STORY = 30.0, 0.3, 90.0
_SLEEP = 2.0
"""How much longer a frozen worker sleeps when another has taken over, so that one sees who was first."""


@dataclass
class Incident:
    """A worker was killed or frozen; what happened to one job that it held."""

    how: How
    worker: str
    pid: int
    org_id: UUID
    job_id: UUID
    attempt: int
    struck_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    lost_at: datetime | None = None
    """When its lease was found lost, by the event."""
    taken_at: datetime | None = None
    """When another attempt started."""
    taken_by: str = ""
    woken_at: datetime | None = None
    refused_at: datetime | None = None
    """When the old worker, awake again, wrote in vain."""
    over: bool = False


class Killer:
    """Does it, one at a time, and writes down what it sees through the same verbs as everybody."""

    def __init__(self, app: Duly, crew: Crew) -> None:
        self.incidents: deque[Incident] = deque(maxlen=10)
        """The last ones, the newest first."""
        self._app = app
        self._crew = crew
        self._following: asyncio.Task[None] | None = None

    async def strike(self, how: How) -> Incident:
        """Kill or freeze a worker that is at a job which has some seconds to go."""
        if self._following is not None and not self._following.done():
            raise Conflict("one after the other", field="worker", fix="wait until the last one is taken over")
        self._following = asyncio.current_task()
        member, job, attempt = await self._victim()
        assert member.process is not None
        incident = Incident(how, member.name, member.process.pid, job.org_id, job.job_id, attempt)
        member.kill() if how == "kill" else member.freeze()
        self.incidents.appendleft(incident)
        self._following = asyncio.create_task(self._follow(incident, member))
        return incident

    async def close(self) -> None:
        """No story is followed any further."""
        if self._following is not None and not self._following.done():
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    async def _victim(self) -> tuple[Member, JobSnapshot, int]:
        async with asyncio.timeout(_PATIENCE):
            while True:
                for job in await self._long_ones():
                    story = await self._app.jobs.show(job.org_id, job.job_id)
                    member = await self._holder(story)
                    if member is not None:
                        return member, job, story.attempts[-1].attempt
                await asyncio.sleep(_PAUSE)

    async def _long_ones(self) -> list[JobSnapshot]:
        """Jobs that take some seconds more; first those that have something to lose already."""
        found = [
            job
            for org in ORGS
            for status in ("running", "partial")
            for job in (await self._app.jobs.list(org.org_id, status=status, job_type=LONG, limit=10)).jobs
        ]
        return sorted(
            (job for job in found if job.progress_percent < _ENOUGH),
            key=lambda j: (not j.partial_count, j.progress_percent),
        )

    async def _holder(self, story: JobDetail) -> Member | None:
        if not story.attempts or story.job.status.terminal:
            return None
        holder = story.attempts[-1].worker_id
        pids = {str(worker.worker_id): worker.pid for worker in await self._app.queues.workers()}
        member = self._crew.with_pid(pids.get(holder, 0))
        return member if member is not None and member.ready.is_set() and not member.frozen else None

    async def _follow(self, incident: Incident, member: Member) -> None:
        try:
            async with asyncio.timeout(_STORY):
                while not incident.over:
                    with suppress(DulyError):
                        await self._look(incident, member)
                    await asyncio.sleep(_PAUSE)
        except TimeoutError:
            pass
        finally:
            incident.over = True
            if member.frozen:
                member.wake()

    async def _look(self, incident: Incident, member: Member) -> None:
        story = await self._app.jobs.show(incident.org_id, incident.job_id)
        for event in story.events:
            if event.event_type == EventType.LEASE_LOST and event.attempt == incident.attempt:
                incident.lost_at = event.occurred_at
            if event.event_type == EventType.STARTED and event.attempt == incident.attempt + 1:
                incident.taken_at = event.occurred_at
                incident.taken_by = await self._name(event.actor_id) or incident.taken_by
        if incident.taken_at is None:
            incident.over = story.job.status.terminal  # it was quicker than we
        elif incident.how == "kill":
            incident.over = True
        elif member.frozen:
            await asyncio.sleep(_SLEEP)
            member.wake()
            incident.woken_at = datetime.now(UTC)
        else:
            await self._look_for_refusal(incident)

    async def _look_for_refusal(self, incident: Incident) -> None:
        said = await self._app.jobs.logs(incident.org_id, incident.job_id, attempt=incident.attempt)
        for line in said.lines:
            if line.line_seq == REFUSED_LINE_SEQ:
                incident.refused_at, incident.over = line.logged_at, True

    async def _name(self, worker_id: str) -> str:
        return next((w.name for w in await self._app.queues.workers() if str(w.worker_id) == worker_id), "")
