"""The judgement on a job that may no longer be believed: what is wrong with it, with the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from duly.model.reconciliation import ReconciliationKind, ReconciliationRecord, ReconciliationSource
from duly.model.states import HELD, Status
from duly.store.suspects import Suspect

GRACE = timedelta(seconds=60)
"""How long a worker may take to end what has reached its time-out, or what its own record says is over."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be, and whether it was put right."""

    org_id: UUID
    job_id: UUID
    job_type: str
    status: str
    """What the job said."""
    becomes: str
    """What becomes of it; its own status if it has ended already, and only the record is put right."""
    record: ReconciliationRecord
    healed: bool = False
    record_id: str | None = None
    """The product's record, if that was wrong."""


def judge(suspect: Suspect) -> ReconciliationRecord | None:
    """What is to be put right, if anything is."""
    status, lifecycle = Status(suspect.status), suspect.lifecycle
    if status.terminal or not (lifecycle.covered and lifecycle.supports_reconciliation):
        return None
    verdict = suspect.assess()
    if status is Status.QUEUED and not suspect.queued:
        return _record(ReconciliationKind.QUEUE_FAILURE_BRIDGE, suspect)
    if not verdict.overdue:
        return None
    if status in HELD:
        return None if _is_cared_for(suspect) else _record(ReconciliationKind.STALE_RUNNING, suspect)
    # Who pauses a queue does not want its jobs to fail.
    return None if suspect.paused else _record(ReconciliationKind.STALE_QUEUED, suspect)


def _is_cared_for(suspect: Suspect) -> bool:
    """Whether somebody else is about to settle it: the reaper of a lost worker, or a worker that lives."""
    if not suspect.claimed:
        return False
    started, horizon = suspect.attempt_started_at, suspect.lifecycle.running_stale_after
    in_time = started is not None and suspect.looked_at <= started + horizon + GRACE
    return suspect.abandoned or in_time


def overruled_by(suspect: Suspect, reason: str, record_id: str, adapter: str) -> ReconciliationRecord | None:
    """The record of a job whose own product says that it is over; None if it is over."""
    if Status(suspect.status).terminal or not suspect.lifecycle.supports_reconciliation:
        return None
    kind, evidence = ReconciliationKind.ADAPTER_SYNC, {"adapter": adapter, "record_id": record_id}
    return ReconciliationRecord.of(
        kind,
        {**evidence_of(suspect), **evidence},
        suspect.looked_at,
        message=reason or None,
        source=ReconciliationSource.ADAPTER_RECONCILER,
    )


def _record(kind: ReconciliationKind, suspect: Suspect) -> ReconciliationRecord:
    return ReconciliationRecord.of(kind, evidence_of(suspect), suspect.looked_at)


def evidence_of(suspect: Suspect) -> dict[str, Any]:
    """What speaks for the judgement."""
    verdict = suspect.assess()
    threshold = verdict.threshold
    known = {
        **verdict.evidence,
        "attempt": suspect.attempt,
        "threshold_seconds": None if threshold is None else threshold.total_seconds(),
        "queued": suspect.queued,
        "claimed": suspect.claimed,
        "worker_id": suspect.worker_id and str(suspect.worker_id),
        "worker": suspect.worker_name,
    }
    return {name: value for name, value in known.items() if value is not None}
