"""Reconcile everything now, on request, without waiting for the chores."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import UUID

from duly.core.decide import decide
from duly.core.outcome import Lost
from duly.core.policy import parse_stored_policy
from duly.core.reconciliation import ReconciliationKind, ReconciliationRecord
from duly.jobs import stale_jobs
from duly.jobs.application import App
from duly.jobs.stale_jobs import JobEvidence
from duly.maintenance.adapter_sync import AdapterSync
from duly.maintenance.failure_callbacks import FailureCallbackRetrier
from duly.maintenance.reaper import Reaper
from duly.maintenance.reconciler import Reconciler, ReconciliationFinding, evidence_of

_MAX_LOST_LEASES = 1_000


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What was found, and what was corrected."""

    findings: list[ReconciliationFinding] = field(default_factory=list)
    callbacks_made: list[UUID] = field(default_factory=list)
    """The jobs whose owed failure callbacks were made."""
    troubles: list[str] = field(default_factory=list)
    """Errors: adapters and callbacks that failed, jobs that could not be corrected."""


async def reconcile(app: App, *, dry_run: bool = False) -> Reconciliation:
    """Correct lost leases, stale jobs, domain records and owed callbacks; with `dry_run` only find them."""
    adapters = AdapterSync(app)
    findings = await _lost_leases(app, dry_run=dry_run)
    findings += await Reconciler(app).sweep_all(dry_run=dry_run)
    findings += await adapters.sweep_all(dry_run=dry_run)
    callbacks = {} if dry_run else await FailureCallbackRetrier(app).retry_due()
    failed = [f"the callback of job {callback.job_id} failed" for callback, ok in callbacks.items() if not ok]
    stuck = [f"job {f.job_id} could not be reconciled" for f in findings if not (dry_run or f.healed)]
    made = [callback.job_id for callback, ok in callbacks.items() if ok]
    return Reconciliation(findings, made, [*adapters.troubles, *failed, *stuck])


async def _lost_leases(app: App, *, dry_run: bool) -> list[ReconciliationFinding]:
    async with (await app.resources()).database.engine() as conn:
        found = await stale_jobs.read_evidence(conn, await stale_jobs.find_lost(conn, limit=_MAX_LOST_LEASES))
    findings = [_lost_lease(job) for job in found]
    if dry_run or not findings:
        return findings
    reaper = Reaper(app)
    while await reaper.once() == timedelta(0):
        pass
    return [replace(finding, healed=True) for finding in findings]


def _lost_lease(job: JobEvidence) -> ReconciliationFinding:
    record = ReconciliationRecord.of(ReconciliationKind.LOST_LEASE, evidence_of(job), job.read_at)
    to = decide(job.state, Lost(record=record), parse_stored_policy(job.policy).retry, record.at, 0.0)
    return ReconciliationFinding(job.org_id, job.job_id, job.job_type, job.status, to.status, record)
