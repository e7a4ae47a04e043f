"""Jobs: enqueue, read, cancel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.rows import dict_row

from duly.model.job import Actor, JobSnapshot, JobSpec
from duly.model.outcome import CanceledBy
from duly.store.pool import Connection
from duly.store.statements import statement


class Written(NamedTuple):
    """The answer to one enqueued job: its id, and whether it is new."""

    job_id: UUID
    created: bool


class Batch(NamedTuple):
    """Jobs as two JSON documents: documents cost a driver far less than an array per column."""

    policies: str
    jobs: str


def encode(specs: Sequence[JobSpec]) -> Batch:
    """The batch for `duly.enqueue_jobs`. Jobs of one type share their policy, which is sent once."""
    numbers: dict[str, int] = {}
    jobs = [_encode(spec, numbers.setdefault(spec.policy.as_json, len(numbers))) for spec in specs]
    return Batch(f"[{','.join(numbers)}]", f"[{','.join(jobs)}]")


def _encode(spec: JobSpec, policy: int) -> str:
    origin = spec.origin
    head: dict[str, Any] = {
        "job_id": str(spec.job_id),
        "result_id": str(spec.result_id),
        "job_type": spec.job_type,
        "policy": policy,
        "actor_type": origin.actor.type,
        "actor_id": origin.actor.id,
        "request_id": origin.request_id,
        "correlation_id": origin.correlation_id,
    }
    rest = {
        "project_id": origin.project_id and str(origin.project_id),
        "traceparent": origin.traceparent,
        "parent_id": origin.parent_id and str(origin.parent_id),
        "payload_ref": spec.payload_ref,
        "payload_hash": spec.payload_hash,
        "subject_id": spec.subject_id,
        "scheduled_for": spec.scheduled_for and spec.scheduled_for.isoformat(),
        "idempotency_key": spec.idempotency_key,
        "run_identity_hash": spec.run_identity_hash,
        "metadata": spec.metadata,
    }
    head.update((name, value) for name, value in rest.items() if value is not None)
    # The payload is JSON already.
    return f'{json.dumps(head)[:-1]}, "payload": {spec.payload}}}'


async def enqueue(conn: Connection, org_id: UUID, specs: Sequence[JobSpec]) -> list[Written]:
    """Write the jobs of one org in the order given."""
    values = {"org_id": org_id, "wake": False, **encode(specs)._asdict()}
    cursor = await conn.execute(statement("jobs/enqueue"), values, prepare=True)
    return [Written(*row) for row in await cursor.fetchall()]


async def read(conn: Connection, org_id: UUID, job_id: UUID) -> JobSnapshot | None:
    """One job, or None if this org has none of that id."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("jobs/read"), {"org_id": org_id, "job_id": job_id})
        row = await cursor.fetchone()
    return JobSnapshot.model_validate(row) if row else None


async def cancel(
    conn: Connection, org_id: UUID, job_id: UUID, *, by: CanceledBy, reason: str, actor: Actor
) -> str | None:
    """End a waiting job, or ask its worker: `canceled`, `requested`, `finished`, or None if unknown."""
    cursor = await conn.execute(
        statement("jobs/cancel"),
        {
            "org_id": org_id,
            "job_id": job_id,
            "canceled_by": by,
            "reason": reason,
            "actor_type": actor.type,
            "actor_id": actor.id,
        },
    )
    row = await cursor.fetchone()
    return row[0] if row else None
