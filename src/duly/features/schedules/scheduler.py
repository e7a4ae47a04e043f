"""Schedules: every tick becomes a job or a record that it was missed, and never two jobs.

A schedule is taken under its row lock; its ticks, their jobs and the time of the next one are written in one
transaction. A crash leaves all of it or nothing, and many schedulers may work side by side.
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
from duly.features.schedules import store as schedules
from duly.features.schedules.store import ScheduleSnapshot
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.enqueue_options import new_job_id, new_result_id
from duly.jobs.job import Job
from duly.observability import metrics

log = logging.getLogger("duly.maintenance")

SCHEDULER = Actor.system("scheduler")
# Nothing wakes a scheduler when a schedule is made, resumed or changed: it looks often enough to be on time.
_NOW, _LONGEST_WAIT = timedelta(0), timedelta(seconds=1)
_ON_TIME = timedelta(seconds=5)
_AFTER_TROUBLE = timedelta(seconds=60)


class Scheduler:
    """The chore that turns ticks into jobs."""

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
        self._waiting: set[UUID] = set()
        self._made: Counter[tuple[str, str]] = Counter()
        """The new jobs of a round, by type and queue."""

    async def once(self) -> timedelta:
        """Serve the schedules that are due, bounded; how long until the next tick, a second at most."""
        # Others know the job types that this process does not know: it leaves those schedules to them.
        known = {job.name: job for job in self._app.registry if job.policy.schedulable}
        return await retry_transaction(lambda: self._round(known)) if known else _LONGEST_WAIT

    async def _round(self, known: Mapping[str, Job[..., Any]]) -> timedelta:
        resources = await self._app.resources()
        self._made.clear()
        async with resources.database.engine() as conn:
            due = await schedules.take_due(conn, known, waiting=self._waiting, limit=self._batch)
            behind = {s.schedule_id for s in due if await self._serve(conn, s, known[s.job_type])}
            wait = await schedules.time_to_next(conn, known)
        for (job_type, queue), n in self._made.items():
            metrics.enqueued(job_type, queue, n)
        if due:
            resources.waker.wake()
        everybody_served = len(due) < self._batch
        caught_up = everybody_served and not behind and not self._waiting
        # Whoever is far behind gets the next turn when all others had theirs.
        self._waiting = set() if everybody_served else self._waiting | behind
        return min(wait or _LONGEST_WAIT, _LONGEST_WAIT) if caught_up else _NOW

    async def _serve(self, conn: Connection, schedule: ScheduleSnapshot, job: Job[..., Any]) -> bool:
        """Whether it has more due ticks than a round takes. One that cannot be served stops no other."""
        trouble: Exception | None = None
        # A quota that has no room for a round's ticks may have room for one.
        for limit in (self._ticks_per_round, 1):
            before = self._made.copy()
            try:
                async with conn.transaction():
                    return await self._settle(conn, schedule, job, limit)
            except psycopg.OperationalError:
                raise  # nothing to do with this schedule
            except (psycopg.Error, ContractError) as error:
                self._made = before
                trouble = translate_error(error) or error
                if not isinstance(trouble, LimitExceeded):
                    break
        log.warning("schedule %s could not be served: %s", schedule.schedule_id, trouble)
        await schedules.set_aside(conn, schedule, pause=_AFTER_TROUBLE, error=str(trouble))
        return False

    async def _settle(
        self, conn: Connection, schedule: ScheduleSnapshot, job: Job[..., Any], limit: int
    ) -> bool:
        now = schedule.read_at
        due = schedule.times.due(schedule.counted_until, now, limit + 1)
        more, due = len(due) > limit, due[:limit]
        late = schedule.missed_policy.to_run(due, more=more, now=now, tolerance=self._tolerance)
        # Several ticks may fall between two looks: nobody missed those that are only seconds old.
        running = [at for at in due if at in late or now - at <= _ON_TIME]
        known = await schedules.recorded(conn, schedule, due) if due else set()
        ticks: dict[datetime, UUID | None] = {at: None for at in due if at not in known}
        if schedule.paused_at is None:
            ticks |= await self._enqueue(conn, schedule, job, [at for at in running if at in ticks])
        await schedules.record(conn, schedule, ticks)
        await schedules.advance(conn, schedule, due[-1] if due else None)
        return more

    async def _enqueue(
        self, conn: Connection, schedule: ScheduleSnapshot, job: Job[..., Any], ticks: Collection[datetime]
    ) -> dict[datetime, UUID]:
        if not ticks:
            return {}
        written = await job_store.enqueue_jobs(
            conn, schedule.org_id, [_spec(schedule, job, at) for at in ticks]
        )
        self._made[job.name, job.policy.queue] += sum(w.created for w in written)
        return {at: w.job_id for at, w in zip(ticks, written, strict=True)}


def _spec(schedule: ScheduleSnapshot, job: Job[..., Any], tick_at: datetime) -> JobSpec:
    family, at = f"schedule:{schedule.schedule_id}", f"{tick_at:%Y-%m-%dT%H:%M:%SZ}"
    key = f"{family}:{at}"
    return JobSpec(
        job_id=new_job_id(),
        result_id=new_result_id(),
        job_type=job.name,
        origin=Origin(schedule.org_id, SCHEDULER, key, family, project_id=schedule.project_id),
        policy=job.policy,
        payload=json.dumps(schedule.payload),
        idempotency_key=key,
        metadata={"schedule_id": str(schedule.schedule_id), "tick_at": at},
    )
