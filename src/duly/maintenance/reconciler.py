"""The reconciler: fails stale jobs, with the evidence on record.

Every sweep is bounded and continues where the last one ended. Several may run at once: the fence refuses the
second write. One job that cannot be reconciled stops no other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import psycopg

from duly.core.decide import Transition, decide
from duly.core.errors import DulyError
from duly.core.outcome import Reconciled
from duly.core.policy import LifecyclePolicy, parse_stored_policy
from duly.core.reconciliation import ReconciliationKind, ReconciliationRecord, ReconciliationSource
from duly.core.states import HELD, Status
from duly.db.database import retry_transaction
from duly.db.pool import Connection
from duly.jobs import stale_jobs
from duly.jobs.application import App
from duly.jobs.failure_callbacks import PendingCallback, run_failure_callback, with_failure_callbacks
from duly.jobs.stale_jobs import JobEvidence, JobKeys, JobScanCursor, QueueScanCursor
from duly.observability import metrics
from duly.observability.logs import ids_of
from duly.observability.metrics import SettledAttempt
from duly.worker import settle_store

log = logging.getLogger("duly.maintenance")
GRACE = timedelta(seconds=60)
"""How long a worker may take to end a job after its time-out, or after its domain record is over."""
_ACTOR_TYPE, _ACTOR_ID = "system", "reconciler"
_MAX_FOUND = 200
_MAX_PARTS = 1_000
_MAX_STEPS = 2_000


@dataclass(frozen=True, slots=True)
class ReconciliationFinding:
    """A job or record with a wrong status, and whether it was corrected."""

    org_id: UUID
    job_id: UUID
    job_type: str
    status: str
    """The status of the job when it was checked."""
    becomes: str
    """The corrected status; unchanged if the job has ended and only the domain record is corrected."""
    record: ReconciliationRecord
    healed: bool = False
    record_id: str | None = None
    """The domain record, if that was wrong."""


def diagnose(job: JobEvidence) -> ReconciliationRecord | None:
    """Return why a job is stale, with the evidence; None if it is not."""
    status, lifecycle = Status(job.status), job.lifecycle
    if status.terminal or not (lifecycle.covered and lifecycle.supports_reconciliation):
        return None
    freshness = job.assess()
    if status is Status.QUEUED and not job.queued:
        return _record(ReconciliationKind.QUEUE_FAILURE_BRIDGE, job)
    if not freshness.overdue:
        return None
    if status in HELD:
        return None if _will_be_settled(job) else _record(ReconciliationKind.STALE_RUNNING, job)
    # The jobs of a paused queue wait on purpose.
    return None if job.paused else _record(ReconciliationKind.STALE_QUEUED, job)


def _will_be_settled(job: JobEvidence) -> bool:
    """Whether the reaper of a lost worker, or a worker that lives, is about to settle the job."""
    if not job.claimed:
        return False
    started, horizon = job.attempt_started_at, job.lifecycle.running_stale_after
    in_time = started is not None and job.read_at <= started + horizon + GRACE
    return job.abandoned or in_time


def diagnose_by_record(
    job: JobEvidence, reason: str, record_id: str, adapter: str
) -> ReconciliationRecord | None:
    """Return the record of an active job whose domain record is over; None if the job has ended, too."""
    if Status(job.status).terminal or not job.lifecycle.supports_reconciliation:
        return None
    return ReconciliationRecord.of(
        ReconciliationKind.ADAPTER_SYNC,
        {**evidence_of(job), "adapter": adapter, "record_id": record_id},
        job.read_at,
        message=reason or None,
        source=ReconciliationSource.ADAPTER_RECONCILER,
    )


def _record(kind: ReconciliationKind, job: JobEvidence) -> ReconciliationRecord:
    return ReconciliationRecord.of(kind, evidence_of(job), job.read_at)


def evidence_of(job: JobEvidence) -> dict[str, Any]:
    """Return the evidence for a diagnosis."""
    freshness = job.assess()
    threshold = freshness.threshold
    evidence = {
        **freshness.evidence,
        "attempt": job.attempt,
        "threshold_seconds": None if threshold is None else threshold.total_seconds(),
        "queued": job.queued,
        "claimed": job.claimed,
        "worker_id": job.worker_id and str(job.worker_id),
        "worker": job.worker_name,
    }
    return {name: value for name, value in evidence.items() if value is not None}


async def fail_job(app: App, job: JobEvidence, record: ReconciliationRecord) -> bool:
    """Fail a job for this reason; return False if it has moved on since it was checked."""
    to = decide(job.state, Reconciled(record), parse_stored_policy(job.policy).retry, record.at, 0.0)
    moved = await with_failure_callbacks(partial(_fail_job, app, job, to))
    if moved:
        metrics.count_reconciled(record.kind, record.reason_code)
        metrics.count_settled([SettledAttempt(job.job_type, job.queue, to, job.state.spent)])
    return moved


async def _fail_job(app: App, job: JobEvidence, to: Transition, with_callback: bool) -> bool:
    async with (await app.resources()).database.engine() as conn:
        if job.status == Status.QUEUED:
            moved = bool(
                await settle_store.fail_waiting(
                    conn, [(job, to)], actor_type=_ACTOR_TYPE, actor_id=_ACTOR_ID, unqueued=not job.queued
                )
            )
        else:
            moved = bool(
                await settle_store.settle(conn, [(job, to)], actor_type=_ACTOR_TYPE, actor_id=_ACTOR_ID)
            )
        if moved and with_callback and to.status is Status.FAILED:
            await call_back(app, conn, PendingCallback(job.org_id, job.job_id, job.job_type))
    return moved


async def call_back(app: App, conn: Connection, callback: PendingCallback) -> None:
    """Call a failure callback in the transaction that owes it, if the job type is declared here."""
    registry, job_type = app.registry, callback.job_type
    if job_type in registry and registry.get(job_type).failure_callbacks:
        await run_failure_callback(app, conn, callback, ReconciliationSource.FAILED_CALLBACK)


class Reconciler:
    """The chore that fails jobs that no worker and no reaper will end."""

    name = "reconciler"

    def __init__(self, app: App, every: timedelta = timedelta(seconds=10)) -> None:
        self._app = app
        self._every = every
        self._part = QueueScanCursor()
        self._step = JobScanCursor()

    async def once(self) -> timedelta:
        """Run one sweep."""
        await self.sweep()
        return self._every

    async def sweep(self, *, dry_run: bool = False) -> list[ReconciliationFinding]:
        """Check some jobs and fail the stale ones; with `dry_run` only check."""
        findings = [
            await self._reconcile(job, dry_run=dry_run) for job in await retry_transaction(self._find)
        ]
        return [finding for finding in findings if finding is not None]

    async def sweep_all(self, *, dry_run: bool = False) -> list[ReconciliationFinding]:
        """Sweep until every job was checked once, from the beginning."""
        self._part, self._step = QueueScanCursor(), JobScanCursor()
        findings: dict[object, ReconciliationFinding] = {}
        parts_done = steps_done = False
        while not (parts_done and steps_done):
            findings |= {(f.job_id, f.record.kind): f for f in await self.sweep(dry_run=dry_run)}
            parts_done |= self._part == QueueScanCursor()
            steps_done |= self._step == JobScanCursor()
        return list(findings.values())

    async def _find(self) -> list[JobEvidence]:
        async with (await self._app.resources()).database.engine() as conn:
            found = [*await self._find_queued(conn), *await self._find_held(conn), *await self._walk(conn)]
            return await stale_jobs.read_evidence(conn, list(dict.fromkeys(found)))

    async def _find_queued(self, conn: Connection) -> JobKeys:
        least = min(policy.queued_stale_after for policy in self._policies())
        found, end = await stale_jobs.find_stale_queued(
            conn, self._part, at_least=least, steps=_MAX_PARTS, limit=_MAX_FOUND
        )
        self._part = end or QueueScanCursor()
        return [*found, *await stale_jobs.find_stale_scheduled(conn, at_least=least, limit=_MAX_FOUND)]

    async def _find_held(self, conn: Connection) -> JobKeys:
        least = min(policy.running_stale_after for policy in self._policies())
        return await stale_jobs.find_stale_running(conn, at_least=least, limit=_MAX_FOUND)

    async def _walk(self, conn: Connection) -> JobKeys:
        found, end = await stale_jobs.scan_jobs(conn, self._step, steps=_MAX_STEPS)
        self._step = end or JobScanCursor()
        return found

    def _policies(self) -> Iterable[LifecyclePolicy]:
        """Yield the known lifecycles: a job younger than the strictest of them cannot be stale."""
        yield LifecyclePolicy()
        yield from (job.policy.lifecycle for job in self._app.registry)

    async def _reconcile(self, job: JobEvidence, *, dry_run: bool) -> ReconciliationFinding | None:
        record = diagnose(job)
        if record is None:
            return None
        to = decide(job.state, Reconciled(record), parse_stored_policy(job.policy).retry, record.at, 0.0)
        finding = ReconciliationFinding(job.org_id, job.job_id, job.job_type, job.status, to.status, record)
        if dry_run:
            return finding
        try:
            if not await fail_job(self._app, job, record):
                return None  # it has moved on, or another process was faster
        except (psycopg.Error, DulyError) as error:
            log.warning("could not reconcile job %s, retrying: %s", job.job_id, error, extra=ids_of(job))
            return finding
        log.warning("reconciled job %s (%s): %s", job.job_id, job.job_type, record.message, extra=ids_of(job))
        return replace(finding, healed=True)
