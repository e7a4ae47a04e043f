"""Ending a job that waits, as the reconciler does it; also of one that does not wait any more."""

from __future__ import annotations

import uuid
from dataclasses import replace

from duly.model.decide import decide
from duly.model.outcome import Overruled
from duly.model.policy import RetryPolicy
from duly.model.reconciliation import ReconciliationKind, ReconciliationRecord
from duly.store import suspects, work
from duly.store.pool import Connection


async def fail_waiting(
    conn: Connection, org: uuid.UUID, job_id: uuid.UUID, *, unqueued: bool = False
) -> bool:
    [found] = await suspects.look(conn, [(org, job_id)])
    waiting = replace(found, status="queued", cancel_requested=False)
    kind = ReconciliationKind.QUEUE_FAILURE_BRIDGE if unqueued else ReconciliationKind.STALE_QUEUED
    record = ReconciliationRecord.of(kind, {"waited": True}, found.looked_at)
    to = decide(waiting.hold, Overruled(record), RetryPolicy(), found.looked_at, 0.0)
    ended = await work.fail_waiting(
        conn, [(waiting, to)], actor_type="system", actor_id="reconciler", unqueued=unqueued
    )
    return ended == {(org, job_id)}
