"""What a worker writes about the jobs it holds: every write is fenced by the attempt."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from duly.model.decide import Transition
from duly.model.error_report import fingerprint
from duly.model.policy import stored_policy
from duly.model.states import Status
from duly.store.claims import ClaimedJob
from duly.store.pool import Connection
from duly.store.statements import statement
from duly.store.suspects import Suspect

Key = tuple[UUID, UUID, int]


Movable = ClaimedJob | Suspect
"""A job that is to be moved: by the worker that holds it, or by whoever puts it right."""


@dataclass(frozen=True, slots=True)
class Step:
    """Progress to be kept, with or without a checkpoint."""

    job: ClaimedJob
    percent: float
    note: str | None = None
    checkpoint: Any = None


def settlement(
    decided: Sequence[tuple[Movable, Transition]],
    *,
    actor_type: str,
    actor_id: str,
    claim_ids: Iterable[UUID] = (),
) -> dict[str, Any]:
    """The values of `jobs/settle`. Sorted, because rows are locked in the order of the document."""
    ordered = sorted(decided, key=lambda pair: pair[0].key)
    rows = [_row(job, transition, actor_type, actor_id) for job, transition in ordered]
    return {"transitions": json.dumps(rows, allow_nan=False), "claim_ids": list(claim_ids)}


async def settle(
    conn: Connection,
    decided: Sequence[tuple[Movable, Transition]],
    *,
    actor_type: str,
    actor_id: str,
    claim_ids: Iterable[UUID] = (),
) -> set[Key]:
    """Write what was decided; the attempts that still were ours. The others were lost."""
    values = settlement(decided, actor_type=actor_type, actor_id=actor_id, claim_ids=claim_ids)
    cursor = await conn.execute(statement("jobs/settle"), values, prepare=True)
    return {(row[0], row[1], row[2]) for row in await cursor.fetchall()}


async def complete(
    conn: Connection,
    done: Sequence[tuple[ClaimedJob, Any]],
    *,
    worker_id: UUID,
    claim_ids: Iterable[UUID] = (),
) -> set[Key]:
    """End jobs that left nothing but a result; the attempts that were lost. `settle` does it for all."""
    results = [None if value is None else json.dumps(value, allow_nan=False) for _, value in done]
    cursor = await conn.execute(
        statement("jobs/complete"),
        {
            # Arrays as text: a driver needs twice as long for the same as values.
            "org_ids": f"{{{','.join([job.org_id.hex for job, _ in done])}}}",
            "job_ids": f"{{{','.join([job.job_id.hex for job, _ in done])}}}",
            "attempts": [job.attempt for job, _ in done],
            "results": results if any(results) else None,
            "worker_id": str(worker_id),
            "claim_ids": list(claim_ids),
        },
        prepare=True,
    )
    return {(row[0], row[1], row[2]) for row in await cursor.fetchall()}


def _row(job: Movable, to: Transition, actor_type: str, actor_id: str) -> dict[str, Any]:
    error, done = to.error, to.done
    row: dict[str, Any] = {
        "org_id": str(job.org_id),
        "job_id": str(job.job_id),
        "attempt": job.attempt,
        "status": to.status,
        "outcome": to.outcome,
        "events": to.events,
        "actor_type": actor_type,
        "actor_id": actor_id,
        "job_type": job.job_type,
        "queue": job.queue,
        "priority": job.priority,
        "run_identity_hash": job.run_identity_hash,
    }
    rest: dict[str, Any] = {
        "run_at": to.run_at and to.run_at.isoformat(),
        "gives_back": to.gives_back or None,
        "retryable": to.retryable,
        "canceled_by": to.canceled_by,
        "cancel_reason": to.cancel_reason,
        "detail": to.detail,
        "summary_counts": to.summary_counts or None,
        "failure_summary": to.failure_summary or None,
    }
    if to.record is not None:
        record = to.record.model_dump(mode="json", exclude_none=True)
        rest |= {"record": record, "detail": {**(to.detail or {}), "reconciliation": record}}
    if to.status is Status.FAILED and stored_policy(job.policy).lifecycle.requires_failed_bridge:
        rest["owes_bridge"] = True
    if error is not None:
        said = {"error_code": error.code, "error_class": error.error_class, "error_message": error.message}
        rest |= {
            **said,
            "detail": {**said, **(rest["detail"] or {})},
            "error_context": dict(error.context),
        }
        rest["fingerprint"] = fingerprint(job.job_type, error)
    if done is not None:
        rest |= {"result": done.result, "result_ref": done.result_ref}
    row.update((name, value) for name, value in rest.items() if value is not None)
    return row


async def store_chunk(
    conn: Connection,
    job: ClaimedJob,
    *,
    chunk_key: str | None,
    payload: Any,
    payload_ref: str | None = None,
    progress_percent: float,
) -> int | None:
    """Keep one chunk's result; its sequence number, or None if the job is no longer ours."""
    cursor = await conn.execute(
        statement("jobs/store_chunk"),
        {
            **job.fence,
            "chunk_key": chunk_key,
            "payload": Jsonb(payload) if payload_ref is None else None,
            "payload_ref": payload_ref,
            "summary": None,
            "progress_percent": progress_percent,
        },
    )
    row = await cursor.fetchone()
    return int(row[0]) if row else None


async def read_chunks(conn: Connection, job: ClaimedJob) -> dict[str, tuple[Any, str | None]]:
    """The chunks that were kept: payload and blob reference by their key, in the order they came."""
    cursor = await conn.execute(
        statement("results/read_chunks"), {"org_id": job.org_id, "job_id": job.job_id}
    )
    return {row[0]: (row[1], row[2]) async for row in cursor}


async def keep_progress(conn: Connection, steps: Sequence[Step]) -> set[Key]:
    """Move many jobs forward; the attempts for which something changed."""
    rows = [
        {
            "org_id": str(step.job.org_id),
            "job_id": str(step.job.job_id),
            "attempt": step.job.attempt,
            "progress_percent": step.percent,
            "note": step.note,
            "checkpoint": step.checkpoint,
        }
        for step in sorted(steps, key=lambda step: step.job.key)
    ]
    cursor = await conn.execute(statement("jobs/progress"), {"steps": json.dumps(rows, allow_nan=False)})
    return {(row[0], row[1], row[2]) for row in await cursor.fetchall()}


async def spend_retries(
    conn: Connection, spending: Mapping[tuple[UUID, str], int], *, per_second: float, burst: int
) -> dict[tuple[UUID, str], datetime]:
    """Spend retries of orgs against dependencies; from when on each group of them may run."""
    rows = [
        {"org_id": str(org), "dependency": dependency, "retries": count}
        for (org, dependency), count in sorted(spending.items())
    ]
    pace = timedelta(seconds=1 / per_second)
    cursor = await conn.execute(
        statement("retries/spend"), {"spending": json.dumps(rows), "pace": pace, "slack": pace * burst}
    )
    return {(row[0], row[1]): row[2] async for row in cursor}


async def fail_waiting(
    conn: Connection,
    decided: Sequence[tuple[Movable, Transition]],
    *,
    actor_type: str,
    actor_id: str,
    unqueued: bool = False,
) -> set[tuple[UUID, UUID]]:
    """End jobs that waited in vain, or that no queue has; those that still waited."""
    values = settlement(decided, actor_type=actor_type, actor_id=actor_id)
    cursor = await conn.execute(statement("jobs/fail_waiting"), {**values, "unqueued": unqueued})
    return {(row[0], row[1]) for row in await cursor.fetchall()}
