"""The reaper: declares dead and silent workers lost, and settles their jobs as a worker would."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from duly.core.decide import JobState, Transition, decide
from duly.core.outcome import Lost
from duly.core.policy import parse_stored_policy
from duly.core.reconciliation import ReconciliationKind, ReconciliationRecord
from duly.core.states import Status
from duly.db.database import retry_transaction
from duly.db.pool import Connection
from duly.jobs.application import App
from duly.jobs.failure_callbacks import PendingCallback, with_failure_callbacks
from duly.maintenance.reconciler import call_back
from duly.observability import metrics
from duly.observability.metrics import SettledAttempt
from duly.worker import settle_store
from duly.worker import workers_store as workers
from duly.worker.claim import ClaimedJob
from duly.worker.workers_store import AbandonedJobs

log = logging.getLogger("duly.maintenance")
_MAX_CLAIMS_PER_SWEEP = 20
_CALLBACK_TIMEOUT = 2.0
_CONNECTION_CLOSED = "the connection of its worker was closed, and no further heartbeat came"
_CONFIRM_SECONDS = 2.0
"""After a restart of the database all workers are absent at first; those that live reconnect meanwhile."""
_MAX_SWEEP_GAP = 5.0
"""Sweeps that are farther apart than this confirm nothing: the worker may have been back in between."""


class AbsentWorkers:
    """Confirms absent workers: those that every sweep of some seconds found absent.

    Times are seconds of a monotonic clock.
    """

    def __init__(self) -> None:
        self._absent: dict[UUID, tuple[float, datetime]] = {}
        self._swept_at = 0.0

    def confirmed(self, absent: Mapping[UUID, datetime], now: float) -> dict[UUID, datetime]:
        """Return the workers that have been absent for long enough, and when that was first found."""
        before = self._absent if now - self._swept_at <= _MAX_SWEEP_GAP else {}
        self._swept_at = now
        self._absent = {worker: before.get(worker, (now, at)) for worker, at in absent.items()}
        return {worker: at for worker, (since, at) in self._absent.items() if now - since >= _CONFIRM_SECONDS}

    def forget(self) -> None:
        """Start over."""
        self._absent = {}


class Reaper:
    """The chore that gives the jobs of lost workers back to the queue, or to the dead letters."""

    name = "reaper"

    def __init__(
        self, app: App, every: timedelta = timedelta(seconds=1), grace: timedelta = timedelta(0)
    ) -> None:
        self._app = app
        self._every = every
        self._grace = grace
        self._sweep_failed = False
        self._absent_workers = AbsentWorkers()

    async def once(self) -> timedelta:
        """Run one sweep; return zero if there was so much that another should follow."""
        if self._sweep_failed:
            # While the database was away no worker could send heartbeats: wait for them before sweeping.
            self._absent_workers.forget()
            async with (await self._app.resources()).database.engine():
                self._sweep_failed = False
            return self._grace
        self._sweep_failed = True
        delay = await self._sweep()
        self._sweep_failed = False
        return delay

    async def _sweep(self) -> timedelta:
        for worker_id, absent_since in (await retry_transaction(self._declare_lost)).items():
            cause = f"its connection closed at {absent_since}" if absent_since else "its lease expired"
            log.warning("worker %s is lost: no heartbeat, and %s", worker_id, cause)
        for _ in range(_MAX_CLAIMS_PER_SWEEP):
            # One claim is one batch: no more than a statement should settle.
            if not await with_failure_callbacks(self._take_over):
                return self._every
        return timedelta(0)

    async def _declare_lost(self) -> dict[UUID, datetime | None]:
        async with (await self._app.resources()).database.engine() as conn:
            absent = self._absent_workers.confirmed(await workers.list_absent(conn), time.monotonic())
            return await workers.declare_lost(conn, absent)

    async def _take_over(self, with_callbacks: bool) -> bool:
        """Settle the jobs of one abandoned claim; return whether there was one."""
        resources = await self._app.resources()
        async with resources.database.engine() as conn:
            abandoned = await workers.lock_abandoned(conn, limit=1)
            if abandoned is None:
                return False
            decided = [(job, _decide(job, hold, abandoned)) for job, hold in abandoned.jobs]
            held = await settle_store.settle(
                conn, decided, actor_type="system", actor_id=self.name, claim_ids=abandoned.claim_ids
            )
            settled_jobs = [(job, to) for job, to in decided if job.key in held]
            if with_callbacks:
                failed = [job for job, to in settled_jobs if to.status is Status.FAILED]
                await self._call_back_all(conn, failed)
        for _, to in settled_jobs:
            if to.record is not None:
                metrics.count_reconciled(to.record.kind, to.record.reason_code)
        metrics.count_settled(
            SettledAttempt(job.job_type, job.queue, to, job.attempt - job.returned)
            for job, to in settled_jobs
        )
        resources.waker.wake()
        log.warning("took over %d jobs of lost workers", len(settled_jobs))
        return True

    async def _call_back_all(self, conn: Connection, failed: Sequence[ClaimedJob]) -> None:
        """Call the callbacks of one batch within a time-out; the others are retried later, one by one."""
        deadline = time.monotonic() + _CALLBACK_TIMEOUT
        for job in failed:
            if time.monotonic() > deadline:
                return
            await call_back(self._app, conn, PendingCallback(job.org_id, job.job_id, job.job_type))


def _decide(job: ClaimedJob, hold: JobState, abandoned: AbandonedJobs) -> Transition:
    evidence = {**abandoned.worker, "attempt": job.attempt}
    message = _CONNECTION_CLOSED if abandoned.closed else None
    record = ReconciliationRecord.of(ReconciliationKind.LOST_LEASE, evidence, abandoned.now, message=message)
    retry = parse_stored_policy(job.policy).retry
    return decide(hold, Lost(record.message, record), retry, abandoned.now, random.random())  # noqa: S311
