"""Kill a worker that runs a job, or freeze it until another one has taken over; record the consequences."""

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

from .customers import ORGS
from .reports import LONG
from .worker_pool import WorkerPool, WorkerProcess

Fault = Literal["kill", "freeze"]
MAX_PROGRESS = 50.0
"""Percent of progress: a job beyond it may end before the takeover is visible."""
VICTIM_TIMEOUT, POLL_INTERVAL, FOLLOW_TIMEOUT = 30.0, 0.3, 90.0
FROZEN_EXTRA = 2.0
"""Seconds that a frozen worker stays frozen after the takeover, so that the order is visible."""


@dataclass
class Incident:
    """A killed or frozen worker, and what happened to one of its jobs."""

    fault: Fault
    worker: str
    pid: int
    org_id: UUID
    job_id: UUID
    attempt: int
    injected_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    lease_lost_at: datetime | None = None
    """When its lease was found lost, by the event."""
    taken_over_at: datetime | None = None
    """When another attempt started."""
    taken_over_by: str = ""
    woken_at: datetime | None = None
    refused_at: datetime | None = None
    """When the old worker, awake again, wrote in vain."""
    done: bool = False


class FaultInjector:
    """Injects one fault at a time and follows the job through the public API."""

    def __init__(self, app: Duly, worker_pool: WorkerPool) -> None:
        self.incidents: deque[Incident] = deque(maxlen=10)
        """The last ones, the newest first."""
        self._app = app
        self._workers = worker_pool
        self._following: asyncio.Task[None] | None = None

    async def inject(self, fault: Fault) -> Incident:
        """Kill or freeze a worker whose job needs some more seconds."""
        if self._following is not None and not self._following.done():
            raise Conflict("a fault is already in progress", field="worker", fix="wait for the takeover")
        self._following = asyncio.current_task()
        worker, job, attempt = await self._victim()
        assert worker.process is not None
        incident = Incident(fault, worker.name, worker.process.pid, job.org_id, job.job_id, attempt)
        worker.kill() if fault == "kill" else worker.freeze()
        self.incidents.appendleft(incident)
        self._following = asyncio.create_task(self._follow(incident, worker))
        return incident

    async def close(self) -> None:
        """Stop following the last incident."""
        if self._following is not None and not self._following.done():
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    async def _victim(self) -> tuple[WorkerProcess, JobSnapshot, int]:
        async with asyncio.timeout(VICTIM_TIMEOUT):
            while True:
                for job in await self._long_jobs():
                    detail = await self._app.jobs.show(job.org_id, job.job_id)
                    worker = await self._holder(detail)
                    if worker is not None:
                        return worker, job, detail.attempts[-1].attempt
                await asyncio.sleep(POLL_INTERVAL)

    async def _long_jobs(self) -> list[JobSnapshot]:
        """Return jobs that need some more seconds; first those with partial results."""
        found = [
            job
            for org in ORGS
            for status in ("running", "partial")
            for job in (await self._app.jobs.list(org.org_id, status=status, job_type=LONG, limit=10)).jobs
        ]
        return sorted(
            (job for job in found if job.progress_percent < MAX_PROGRESS),
            key=lambda j: (not j.partial_count, j.progress_percent),
        )

    async def _holder(self, detail: JobDetail) -> WorkerProcess | None:
        if not detail.attempts or detail.job.status.terminal:
            return None
        holder = detail.attempts[-1].worker_id
        pids = {str(worker.worker_id): worker.pid for worker in await self._app.queues.workers()}
        worker = self._workers.with_pid(pids.get(holder, 0))
        return worker if worker is not None and worker.ready.is_set() and not worker.frozen else None

    async def _follow(self, incident: Incident, worker: WorkerProcess) -> None:
        try:
            async with asyncio.timeout(FOLLOW_TIMEOUT):
                while not incident.done:
                    with suppress(DulyError):
                        await self._update(incident, worker)
                    await asyncio.sleep(POLL_INTERVAL)
        except TimeoutError:
            pass
        finally:
            incident.done = True
            if worker.frozen:
                worker.wake()

    async def _update(self, incident: Incident, worker: WorkerProcess) -> None:
        detail = await self._app.jobs.show(incident.org_id, incident.job_id)
        for event in detail.events:
            if event.event_type == EventType.LEASE_LOST and event.attempt == incident.attempt:
                incident.lease_lost_at = event.occurred_at
            if event.event_type == EventType.STARTED and event.attempt == incident.attempt + 1:
                incident.taken_over_at = event.occurred_at
                incident.taken_over_by = await self._worker_name(event.actor_id) or incident.taken_over_by
        if incident.taken_over_at is None:
            incident.done = detail.job.status.terminal  # the job ended first
        elif incident.fault == "kill":
            incident.done = True
        elif worker.frozen:
            await asyncio.sleep(FROZEN_EXTRA)
            worker.wake()
            incident.woken_at = datetime.now(UTC)
        else:
            await self._read_refused_write(incident)

    async def _read_refused_write(self, incident: Incident) -> None:
        page = await self._app.jobs.logs(incident.org_id, incident.job_id, attempt=incident.attempt)
        for line in page.lines:
            if line.line_seq == REFUSED_LINE_SEQ:
                incident.refused_at, incident.done = line.logged_at, True

    async def _worker_name(self, worker_id: str) -> str:
        return next((w.name for w in await self._app.queues.workers() if str(w.worker_id) == worker_id), "")
