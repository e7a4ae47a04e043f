"""The engine's verbs on jobs: claim, keep chunks and progress, settle, promote."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from duly.model.decide import Transition
from duly.store.pool import Connection
from duly.store.statements import statement


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job as its claim returned it."""

    org_id: UUID
    job_id: UUID
    attempt: int
    returned: int
    progress_percent: float
    partial_count: int
    job_type: str
    queue: str
    priority: int
    project_id: UUID | None
    subject_id: str | None
    actor_type: str
    actor_id: str
    request_id: str
    correlation_id: str
    traceparent: str | None
    run_identity_hash: str | None
    payload: dict[str, Any]
    payload_ref: str | None
    policy: dict[str, Any]

    @property
    def fence(self) -> dict[str, Any]:
        """What every write of this attempt is checked against."""
        return {"org_id": self.org_id, "job_id": self.job_id, "attempt": self.attempt}


async def claim(
    conn: Connection, *, worker_id: UUID, claim_id: UUID, queue: str, slots: int, after_org: UUID
) -> list[ClaimedJob]:
    """Take up to `slots` runnable jobs of a queue, in turn from the orgs after the one served last."""
    async with conn.cursor(row_factory=class_row(ClaimedJob)) as cursor:
        await cursor.execute(
            statement("jobs/claim"),
            {
                "worker_id": worker_id,
                "claim_id": claim_id,
                "queue": queue,
                "slots": slots,
                "after_org": after_org,
            },
        )
        return await cursor.fetchall()


async def settle(
    conn: Connection, decided: Sequence[tuple[ClaimedJob, Transition]], *, actor_type: str, actor_id: str
) -> set[tuple[UUID, UUID, int]]:
    """Write what was decided; (org, job, attempt) of those that still were ours. The others were lost."""
    ordered = sorted(decided, key=lambda pair: (pair[0].org_id, pair[0].job_id))
    rows = [_row(job, transition, actor_type, actor_id) for job, transition in ordered]
    cursor = await conn.execute(statement("jobs/settle"), {"transitions": json.dumps(rows)})
    return {(row[0], row[1], row[2]) for row in await cursor.fetchall()}


def _row(job: ClaimedJob, to: Transition, actor_type: str, actor_id: str) -> dict[str, Any]:
    error, done = to.error, to.done
    row: dict[str, Any] = {
        "org_id": str(job.org_id),
        "job_id": str(job.job_id),
        "attempt": job.attempt,
        "status": to.status,
        "outcome": to.outcome,
        "events": to.events,
        "run_at": to.run_at and to.run_at.isoformat(),
        "gives_back": to.gives_back,
        "retryable": to.retryable,
        "canceled_by": to.canceled_by,
        "cancel_reason": to.cancel_reason,
        "actor_type": actor_type,
        "actor_id": actor_id,
        "job_type": job.job_type,
        "queue": job.queue,
        "priority": job.priority,
        "run_identity_hash": job.run_identity_hash,
    }
    if error is not None:
        detail = {"error_code": error.code, "error_class": error.error_class, "error_message": error.message}
        row |= {
            **detail,
            "detail": detail,
            "fingerprint": fingerprint(job.job_type, error.code, error.error_class),
        }
    if done is not None:
        row |= {"result": done.result, "summary_counts": done.summary_counts or None}
        row |= {"failure_summary": done.failure_summary or None}
    return row


def fingerprint(job_type: str, error_code: str, error_class: str) -> str:
    """What makes two failures the same kind: not their message, which carries ids and numbers."""
    return hashlib.sha256(f"{job_type}\n{error_code}\n{error_class}".encode()).hexdigest()[:16]


async def store_chunk(
    conn: Connection, job: ClaimedJob, *, chunk_key: str, payload: Any, progress_percent: float
) -> int | None:
    """Keep one chunk's result; its sequence number, or None if the job is no longer ours."""
    cursor = await conn.execute(
        statement("jobs/store_chunk"),
        {
            **job.fence,
            "chunk_key": chunk_key,
            "payload": Jsonb(payload),
            "payload_ref": None,
            "summary": None,
            "progress_percent": progress_percent,
        },
    )
    row = await cursor.fetchone()
    return int(row[0]) if row else None


async def progress(conn: Connection, job: ClaimedJob, *, percent: float, note: str | None = None) -> bool:
    """Move the progress forward; whether anything changed."""
    cursor = await conn.execute(
        statement("jobs/progress"), {**job.fence, "progress_percent": percent, "note": note}
    )
    return cursor.rowcount == 1


async def promote(conn: Connection, *, limit: int) -> int:
    """Make the jobs runnable whose time has come; how many."""
    cursor = await conn.execute(statement("jobs/promote"), {"limit": limit})
    return cursor.rowcount


async def fail_waiting(
    conn: Connection,
    org_id: UUID,
    job_id: UUID,
    *,
    error_code: str,
    error_message: str,
    record: dict[str, Any],
) -> bool:
    """End a job that waited in vain; False if it waits no longer."""
    cursor = await conn.execute(
        statement("jobs/fail_waiting"),
        {
            "org_id": org_id,
            "job_id": job_id,
            "error_code": error_code,
            "error_message": error_message,
            "record": Jsonb(record),
        },
    )
    return await cursor.fetchone() is not None
