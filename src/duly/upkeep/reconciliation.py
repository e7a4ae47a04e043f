"""Everything that can be put right, once and at once: for whoever asks, and does not wait for the chores."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import UUID

from duly.client.app import App
from duly.model.decide import decide
from duly.model.outcome import Lost
from duly.model.policy import stored_policy
from duly.model.reconciliation import ReconciliationKind, ReconciliationRecord
from duly.store import suspects
from duly.store.suspects import Suspect
from duly.upkeep.adapters import AdapterSync
from duly.upkeep.judge import Finding, evidence_of
from duly.upkeep.payer import Payer
from duly.upkeep.reaper import Reaper
from duly.upkeep.reconciler import Reconciler

_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What was found, and what became of it."""

    findings: list[Finding] = field(default_factory=list)
    callbacks_made: list[UUID] = field(default_factory=list)
    """The jobs whose failure callbacks were owed, and came."""
    troubles: list[str] = field(default_factory=list)
    """What went wrong on the way: adapters and callbacks that failed."""


async def reconcile(app: App, *, dry_run: bool = False) -> Reconciliation:
    """Lost leases, stale jobs, the product's records, owed callbacks; or only what there would be to do."""
    adapters = AdapterSync(app)
    findings = await _lost_leases(app, dry_run=dry_run)
    findings += await Reconciler(app).go_around(dry_run=dry_run)
    findings += await adapters.go_around(dry_run=dry_run)
    paid = {} if dry_run else await Payer(app).pay()
    failed = [f"the callback of job {debt.job_id} failed" for debt, made in paid.items() if not made]
    stuck = [f"job {f.job_id} could not be put right" for f in findings if not (dry_run or f.healed)]
    made = [debt.job_id for debt, done in paid.items() if done]
    return Reconciliation(findings, made, [*adapters.troubles, *failed, *stuck])


async def _lost_leases(app: App, *, dry_run: bool) -> list[Finding]:
    async with (await app.ground()).database.engine_session() as conn:
        found = await suspects.look(conn, await suspects.lost(conn, limit=_AT_ONCE))
    findings = [_lost(suspect) for suspect in found]
    if dry_run or not findings:
        return findings
    reaper = Reaper(app)
    while await reaper.once() == timedelta(0):
        pass
    return [replace(finding, healed=True) for finding in findings]


def _lost(suspect: Suspect) -> Finding:
    record = ReconciliationRecord.of(ReconciliationKind.LOST_LEASE, evidence_of(suspect), suspect.looked_at)
    retry = stored_policy(suspect.policy).retry
    to = decide(suspect.hold, Lost(record=record), retry, record.at, 0.0)
    return Finding(suspect.org_id, suspect.job_id, suspect.job_type, suspect.status, to.status, record)
