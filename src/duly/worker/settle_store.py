"""Statements that write to held jobs: settle, chunks, progress. The attempt fences every write."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from duly.core.decide import Transition
from duly.core.error_report import fingerprint
from duly.core.policy import parse_stored_policy
from duly.core.states import Status
from duly.db.database import Database, retry_transaction
from duly.db.pool import Connection
from duly.db.statements import statement
from duly.jobs.stale_jobs import JobEvidence
from duly.worker.claim import ClaimedJob

Key = tuple[UUID, UUID, int]
"""The identity of an attempt: org, job, attempt."""
Settleable = ClaimedJob | JobEvidence
"""A job that can be settled: by the worker that holds it, or by the reconciler."""


@dataclass(frozen=True, slots=True)
class ProgressUpdate:
    """New progress of a job, with or without a checkpoint."""

    job: ClaimedJob
    percent: float
    note: str | None = None
    checkpoint: Any = None


def settle_values(
    decided: Sequence[tuple[Settleable, Transition]],
    *,
    actor_type: str,
    actor_id: str,
    claim_ids: Iterable[UUID] = (),
) -> dict[str, Any]:
    """Return the values of `jobs/settle`, sorted: rows are locked in the order of the document."""
    ordered = sorted(decided, key=lambda pair: pair[0].key)
    rows = [_row(job, transition, actor_type, actor_id) for job, transition in ordered]
    return {"transitions": json.dumps(rows, allow_nan=False), "claim_ids": list(claim_ids)}


async def settle(
    conn: Connection,
    decided: Sequence[tuple[Settleable, Transition]],
    *,
    actor_type: str,
    actor_id: str,
    claim_ids: Iterable[UUID] = (),
) -> set[Key]:
    """Write decided transitions; return the attempts that still held their lease. The others were lost."""
    await _leave_plain_path(conn, [job for job, _ in decided])
    values = settle_values(decided, actor_type=actor_type, actor_id=actor_id, claim_ids=claim_ids)
    cursor = await conn.execute(statement("jobs/settle"), values, prepare=True)
    return {(row[0], row[1], row[2]) for row in await cursor.fetchall()}


async def complete(
    conn: Connection,
    done: Sequence[tuple[ClaimedJob, Any]],
    *,
    worker_id: UUID,
    claim_ids: Iterable[UUID] = (),
) -> set[Key]:
    """Complete jobs that left nothing but a result; return the attempts that were lost.

    `settle` does the same for every ending, at twice the cost.
    """
    results = [value for _, value in done]
    cursor = await conn.execute(
        statement("jobs/complete"),
        {
            # Arrays as text: the driver takes twice as long to adapt lists of UUIDs, and ten times for texts.
            "org_ids": f"{{{','.join([job.org_id.hex for job, _ in done])}}}",
            "job_ids": f"{{{','.join([job.job_id.hex for job, _ in done])}}}",
            "attempts": [job.attempt for job, _ in done],
            "results": json.dumps(results, allow_nan=False) if any(v is not None for v in results) else None,
            "worker_id": str(worker_id),
            "claim_ids": list(claim_ids),
        },
        prepare=True,
    )
    return {(row[0], row[1], row[2]) for row in await cursor.fetchall()}


async def complete_plain(
    conn: Connection, done: Sequence[tuple[ClaimedJob, Any]], *, claim_ids: Iterable[UUID] = ()
) -> set[tuple[UUID, UUID]]:
    """Complete jobs of the plain path; return the org and id of those that have left it, or were lost."""
    results = [value for _, value in done]
    numbers: dict[UUID, int] = {}
    claim_of: list[int] = []
    for claim_id, of_claim in groupby([job.claim_id for job, _ in done]):
        claim_of += [numbers.setdefault(claim_id, len(numbers) + 1)] * len(list(of_claim))
    cursor = await conn.execute(
        statement("jobs/complete_plain"),
        {
            "claim_ids": list(numbers),
            "claim_of": claim_of,
            "org_ids": f"{{{','.join([job.org_id.hex for job, _ in done])}}}",
            "job_ids": f"{{{','.join([job.job_id.hex for job, _ in done])}}}",
            "results": json.dumps(results, allow_nan=False) if any(v is not None for v in results) else None,
            "settled_claims": list(claim_ids),
        },
        prepare=True,
    )
    return {(row[0], row[1]) for row in await cursor.fetchall()}


async def leave_plain_path(database: Database, jobs: Iterable[ClaimedJob]) -> None:
    """Give jobs of the plain path a state row, before anything but a plain completion is written for them.

    In a transaction of its own, so that the claim is locked for a moment only. Once it has committed, the
    jobs are remembered as having left.
    """
    plain = [job for job in jobs if job.is_plain]
    if not plain:
        return

    async def once() -> None:
        async with database.engine_autocommit() as conn:
            await _leave_plain_path(conn, plain)

    await retry_transaction(once)
    for job in plain:
        assert job.left_jobs is not None
        job.left_jobs.add(job.job_id)


async def _leave_plain_path(conn: Connection, jobs: Sequence[Settleable]) -> None:
    plain = [job for job in jobs if isinstance(job, ClaimedJob) and job.is_plain]
    if plain:
        await conn.execute(statement("jobs/leave_plain_path"), plain_values(plain))
    for job in jobs:
        # The reconciler does not know the claim.
        if isinstance(job, JobEvidence):
            key = {"org_id": job.org_id, "job_id": job.job_id}
            await conn.execute(statement("jobs/leave_plain_path_of"), key)


def plain_values(jobs: Sequence[ClaimedJob]) -> dict[str, Any]:
    """Return the values of `jobs/leave_plain_path`."""
    return {
        "claim_ids": [job.claim_id for job in jobs],
        "org_ids": [job.org_id for job in jobs],
        "job_ids": [job.job_id for job in jobs],
    }


def _row(job: Settleable, to: Transition, actor_type: str, actor_id: str) -> dict[str, Any]:
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
    if to.status is Status.FAILED and parse_stored_policy(job.policy).lifecycle.requires_failed_bridge:
        rest["owes_bridge"] = True
    if error is not None:
        fields = {"error_code": error.code, "error_class": error.error_class, "error_message": error.message}
        rest |= {
            **fields,
            "detail": {**fields, **(rest["detail"] or {})},
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
    """Store one chunk's result; return its sequence number, or None if the lease was lost."""
    await _leave_plain_path(conn, [job])
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
    """Return payload and blob reference of the stored chunks by key, in the order they were stored."""
    cursor = await conn.execute(
        statement("results/read_chunks"), {"org_id": job.org_id, "job_id": job.job_id}
    )
    return {row[0]: (row[1], row[2]) async for row in cursor}


async def write_progress(conn: Connection, updates: Sequence[ProgressUpdate]) -> set[Key]:
    """Write the progress of many jobs; return the attempts whose row changed."""
    rows = [
        {
            "org_id": str(update.job.org_id),
            "job_id": str(update.job.job_id),
            "attempt": update.job.attempt,
            "progress_percent": update.percent,
            "note": update.note,
            "checkpoint": update.checkpoint,
        }
        for update in sorted(updates, key=lambda update: update.job.key)
    ]
    await _leave_plain_path(conn, [update.job for update in updates])
    cursor = await conn.execute(
        statement("jobs/update_progress"), {"updates": json.dumps(rows, allow_nan=False)}
    )
    return {(row[0], row[1], row[2]) for row in await cursor.fetchall()}


async def spend_retries(
    conn: Connection, spending: Mapping[tuple[UUID, str], int], *, per_second: float, burst: int
) -> dict[tuple[UUID, str], datetime]:
    """Spend retries of orgs against dependencies; return the earliest run time of each group."""
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
    decided: Sequence[tuple[Settleable, Transition]],
    *,
    actor_type: str,
    actor_id: str,
    unqueued: bool = False,
) -> set[tuple[UUID, UUID]]:
    """Fail queued jobs that waited too long or are missing in their queue; return those still queued."""
    values = settle_values(decided, actor_type=actor_type, actor_id=actor_id)
    cursor = await conn.execute(statement("jobs/fail_waiting"), {**values, "unqueued": unqueued})
    return {(row[0], row[1]) for row in await cursor.fetchall()}
