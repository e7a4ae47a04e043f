"""Jobs: enqueue, read, cancel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.rows import dict_row

from duly.model.job import Actor, JobSnapshot, JobSpec
from duly.model.outcome import CanceledBy
from duly.store.pool import Connection
from duly.store.session import Database
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
    heads: dict[tuple[int, int, str], str] = {}
    jobs: list[str] = []
    for spec in specs:
        like = (id(spec.origin), id(spec.policy), spec.job_type)
        if like not in heads:
            heads[like] = _head(spec, numbers.setdefault(spec.policy.as_json, len(numbers)))
        jobs.append(f'{heads[like]}, "payload": {spec.payload}{_rest(spec)}}}')
    return Batch(f"[{','.join(numbers)}]", f"[{','.join(jobs)}]")


def _head(spec: JobSpec, policy: int) -> str:
    """What many jobs of a batch have in common, as the beginning of an object."""
    origin = spec.origin
    head: dict[str, Any] = {
        "job_type": spec.job_type,
        "policy": policy,
        "actor_type": origin.actor.type,
        "actor_id": origin.actor.id,
        "request_id": origin.request_id,
        "correlation_id": origin.correlation_id,
        "project_id": origin.project_id and str(origin.project_id),
        "traceparent": origin.traceparent,
        "parent_id": origin.parent_id and str(origin.parent_id),
    }
    return json.dumps({name: value for name, value in head.items() if value is not None})[:-1]


def _rest(spec: JobSpec) -> str:
    """What is its own, as the end of an object."""
    own = f', "job_id": "{spec.job_id.hex}", "result_id": "{spec.result_id.hex}"'
    if spec.idempotency_key is not None:
        own += f', "idempotency_key": {quoted(spec.idempotency_key)}'
    rest = {
        "payload_ref": spec.payload_ref,
        "payload_hash": spec.payload_hash,
        "subject_id": spec.subject_id,
        "scheduled_for": spec.scheduled_for and spec.scheduled_for.isoformat(),
        "run_identity_hash": spec.run_identity_hash,
        "metadata": spec.metadata,
    }
    said = {name: value for name, value in rest.items() if value is not None}
    return f"{own}, {json.dumps(said)[1:-1]}" if said else own


async def enqueue_alone(
    database: Database,
    org_id: UUID,
    specs: Sequence[JobSpec],
    *,
    wake: bool,
    lock_timeout: timedelta | None = None,
) -> list[Written]:
    """The same as a transaction of its own, which may also wake the workers."""
    values = {"org_id": org_id, "wake": wake, **encode(specs)._asdict()}
    rows = await database.tenant_statement(
        org_id, statement("jobs/enqueue"), values, lock_timeout=lock_timeout
    )
    return [Written(*row) for row in rows]


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
