"""Fail a queued job as the reconciler does."""

from __future__ import annotations

import uuid
from dataclasses import replace

from duly.core.decide import decide
from duly.core.outcome import Reconciled
from duly.core.policy import RetryPolicy
from duly.core.reconciliation import ReconciliationKind, ReconciliationRecord
from duly.db.pool import Connection
from duly.jobs import stale_jobs
from duly.worker import settle_store as work


async def fail_waiting(
    conn: Connection, org: uuid.UUID, job_id: uuid.UUID, *, unqueued: bool = False
) -> bool:
    """Fail the job with evidence that says queued, whatever its status; return whether it was failed."""
    [evidence] = await stale_jobs.read_evidence(conn, [(org, job_id)])
    waiting = replace(evidence, status="queued", cancel_requested=False)
    kind = ReconciliationKind.QUEUE_FAILURE_BRIDGE if unqueued else ReconciliationKind.STALE_QUEUED
    record = ReconciliationRecord.of(kind, {"waited": True}, evidence.read_at)
    to = decide(waiting.state, Reconciled(record), RetryPolicy(), evidence.read_at, 0.0)
    ended = await work.fail_waiting(
        conn, [(waiting, to)], actor_type="system", actor_id="reconciler", unqueued=unqueued
    )
    return ended == {(org, job_id)}
