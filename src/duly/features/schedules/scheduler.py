"""The scheduler: every tick becomes one job or a record that it was missed.

The scheduler locks the row of a schedule, and writes its ticks, their jobs and the time of the next tick in
one transaction. A crash leaves all of it or nothing, and many schedulers may run at the same time.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg

from duly.core.errors import ContractError, LimitExceeded
from duly.core.job import Actor, JobSpec, Origin
from duly.db.database import retry_transaction
from duly.db.errors import translate_error
from duly.db.pool import Connection
from duly.features.schedules import store
from duly.features.schedules.models import ScheduleSnapshot
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.enqueue_options import new_ids
from duly.jobs.job import Job
from duly.observability import metrics

log = logging.getLogger("duly.maintenance")

SCHEDULER = Actor.system("scheduler")
# Nothing wakes a scheduler when a schedule is created, resumed or changed: it polls often enough.
_MAX_WAIT = timedelta(seconds=1)
_ON_TIME_TOLERANCE = timedelta(seconds=5)
_ERROR_PAUSE = timedelta(seconds=60)


class Scheduler:
    """The maintenance task that turns ticks into jobs."""

    name = "scheduler"

    def __init__(
        self,
        app: App,
        *,
        batch: int = 20,
        ticks_per_round: int = 100,
        tolerance: timedelta = timedelta(seconds=60),
    ) -> None:
        self._app = app
        self._batch = batch
        self._ticks_per_round = ticks_per_round
        self._tolerance = tolerance
        self._excluded: set[UUID] = set()
        """Schedules with many due ticks that had their turn: the next one comes after all others."""
        self._created: Counter[tuple[str, str]] = Counter()
        """The new jobs of a round, by type and queue."""

    async def once(self) -> timedelta:
        """Enqueue the jobs of due ticks, bounded; return the time until the next tick, a second at most."""
        # Schedules of job types that this process does not declare are left to processes that do.
        jobs = {job.name: job for job in self._app.registry if job.policy.schedulable}
        return await retry_transaction(lambda: self._round(jobs)) if jobs else _MAX_WAIT

    async def _round(self, jobs: Mapping[str, Job[..., Any]]) -> timedelta:
        resources = await self._app.resources()
        self._created.clear()
        async with resources.database.engine() as conn:
            due = await store.take_due(conn, jobs, excluded=self._excluded, limit=self._batch)
            behind = {s.schedule_id for s in due if await self._serve(conn, s, jobs[s.job_type])}
            wait = await store.time_to_next_tick(conn, jobs)
        for (job_type, queue), count in self._created.items():
            metrics.count_enqueued(job_type, queue, count)
        if due:
            resources.waker.wake()
        all_served = len(due) < self._batch
        caught_up = all_served and not behind and not self._excluded
        self._excluded = set() if all_served else self._excluded | behind
        return min(wait or _MAX_WAIT, _MAX_WAIT) if caught_up else timedelta(0)

    async def _serve(self, conn: Connection, schedule: ScheduleSnapshot, job: Job[..., Any]) -> bool:
        """Return whether more ticks are due than a round takes. An error postpones this schedule only."""
        failure: Exception | None = None
        # A quota without room for the ticks of a round may have room for one.
        for limit in (self._ticks_per_round, 1):
            created = self._created.copy()
            try:
                async with conn.transaction():
                    return await self._enqueue_due(conn, schedule, job, limit)
            except psycopg.OperationalError:
                raise  # the database, not this schedule
            except (psycopg.Error, ContractError) as error:
                self._created = created
                failure = translate_error(error) or error
                if not isinstance(failure, LimitExceeded):
                    break
        log.warning("could not enqueue ticks of schedule %s: %s", schedule.schedule_id, failure)
        await store.postpone(conn, schedule, pause=_ERROR_PAUSE, error=str(failure))
        return False

    async def _enqueue_due(
        self, conn: Connection, schedule: ScheduleSnapshot, job: Job[..., Any], limit: int
    ) -> bool:
        now = schedule.read_at
        due = schedule.times.due(schedule.counted_until, now, limit + 1)
        more, due = len(due) > limit, due[:limit]
        late = schedule.missed_policy.to_run(due, more=more, now=now, tolerance=self._tolerance)
        # Several ticks may be due between two polls: those that are only seconds old are not late.
        to_run = [at for at in due if at in late or now - at <= _ON_TIME_TOLERANCE]
        recorded = await store.find_recorded(conn, schedule, due) if due else set()
        ticks: dict[datetime, UUID | None] = {at: None for at in due if at not in recorded}
        if schedule.paused_at is None:
            ticks |= await self._enqueue(conn, schedule, job, [at for at in to_run if at in ticks])
        await store.record_ticks(conn, schedule, ticks)
        await store.advance(conn, schedule, due[-1] if due else None)
        return more

    async def _enqueue(
        self, conn: Connection, schedule: ScheduleSnapshot, job: Job[..., Any], ticks: Collection[datetime]
    ) -> dict[datetime, UUID]:
        if not ticks:
            return {}
        specs = [_tick_job_spec(schedule, job, at) for at in ticks]
        enqueued = await job_store.enqueue_jobs(conn, schedule.org_id, specs)
        self._created[job.name, job.policy.queue] += sum(one.created for one in enqueued)
        return {at: one.job_id for at, one in zip(ticks, enqueued, strict=True)}


def _tick_job_spec(schedule: ScheduleSnapshot, job: Job[..., Any], tick_at: datetime) -> JobSpec:
    at = f"{tick_at:%Y-%m-%dT%H:%M:%SZ}"
    return schedule_job_spec(schedule, job, SCHEDULER, metadata={"tick_at": at}, key=at)


def schedule_job_spec(
    schedule: ScheduleSnapshot,
    job: Job[..., Any],
    actor: Actor,
    *,
    metadata: Mapping[str, Any],
    key: str | None = None,
    request_id: str | None = None,
    traceparent: str | None = None,
) -> JobSpec:
    """Return a job of a schedule: of the tick `key`, which is enqueued once, or of a manual run."""
    [(job_id, result_id)] = new_ids(1)
    correlation_id = f"schedule:{schedule.schedule_id}"
    idempotency_key = f"{correlation_id}:{key or f'run_now:{job_id}'}"
    return JobSpec(
        job_id=job_id,
        result_id=result_id,
        job_type=job.name,
        origin=Origin(
            schedule.org_id,
            actor,
            request_id or idempotency_key,
            correlation_id,
            schedule.project_id,
            traceparent,
        ),
        policy=job.policy,
        payload=json.dumps(schedule.payload),
        idempotency_key=idempotency_key,
        metadata={"schedule_id": str(schedule.schedule_id), **metadata},
    )
