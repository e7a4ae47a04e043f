"""Storage of jobs, their events, results, artifacts and payloads, and of audit entries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import UUID, uuid4

from psycopg.rows import class_row, dict_row, scalar_row
from psycopg.types.json import Jsonb
from pydantic_core import to_json

from duly.blobs import BlobRef
from duly.core.job import Actor, JobEvent, JobSnapshot, JobSpec
from duly.core.outcome import CanceledBy
from duly.core.states import Status
from duly.db.database import Database
from duly.db.pool import Connection
from duly.db.prepared import Value, binary_uuid_array
from duly.db.rows import first, rows
from duly.db.statements import statement

if TYPE_CHECKING:
    from duly.jobs.application import App


class EnqueuedJob(NamedTuple):
    """An enqueued job: its id, and whether it is new."""

    job_id: UUID
    created: bool


Wake = Literal["with commit", "after commit"]
"""When the transaction of an enqueue notifies the workers."""
Differing = list[EnqueuedJob | None]
"""For each job of a batch None if it was written as specified, else the job that is stored instead."""


def encode_batch(specs: Sequence[JobSpec]) -> dict[str, str | None]:
    """Return the arguments of `duly.enqueue_batch` after the org, in order. What jobs share is sent once.

    As text, because arrays of text are much cheaper for a driver than arrays of values.
    """
    # By column where possible, because a visit of each job takes longer than all else.
    job_ids, result_ids, types, origins, their_policies, payloads, refs, _, *few = zip(*specs, strict=True)
    subjects, times, keys, runs, metadata = few
    head_of = list(zip(map(id, origins), map(id, their_policies), types, strict=True))
    numbers: dict[tuple[int, int, str], str] = {}
    policies: dict[str, int] = {}
    heads: list[str] = []
    for head, spec in dict(zip(head_of, specs, strict=True)).items():
        numbers[head] = str(len(heads))
        heads.append(_encode_head(spec, policies.setdefault(spec.policy.as_json, len(policies))))
    options: list[str] = []
    if not refs == subjects == times == runs == metadata == (None,) * len(specs):
        options = [
            _encode_options(spec, position) for position, spec in enumerate(specs, 1) if spec.has_options
        ]
    return {
        "policies": f"[{','.join(policies)}]",
        "heads": f"[{','.join(heads)}]",
        "job_ids": _text_array(job_ids),
        "result_ids": _text_array(result_ids),
        "payloads": f"[{','.join(payloads)}]",
        "head_of": f"{{{','.join([numbers[head] for head in head_of])}}}" if len(heads) > 1 else None,
        "keys": f"{{{','.join(map(_array_element, keys))}}}" if any(keys) else None,
        "options": f"[{','.join(options)}]" if options else None,
    }


def _batch_values(specs: Sequence[JobSpec]) -> dict[str, Value]:
    """Return the arguments of `duly.enqueue_batch` after the org, with ids that need no parsing."""
    ids = [spec[:2] for spec in specs]
    job_ids, result_ids = map(binary_uuid_array, zip(*ids, strict=True))
    return {**encode_batch(specs), "job_ids": job_ids, "result_ids": result_ids}


def _job_values(spec: JobSpec) -> dict[str, Value]:
    """Return the arguments of `duly.enqueue_one` after the org."""
    return {
        "policy": spec.policy.as_json,
        **_head(spec),
        "job_id": spec.job_id,
        "result_id": spec.result_id,
        "payload": spec.payload,
        "key": spec.idempotency_key,
        "options": _encode_options(spec, 1) if spec.has_options else None,
    }


def _encode_head(spec: JobSpec, policy: int) -> str:
    return to_json({**_head(spec), "policy": policy}).decode()


def _head(spec: JobSpec) -> dict[str, Value]:
    """Return the fields that the jobs of one call share."""
    origin = spec.origin
    return {
        "job_type": spec.job_type,
        "actor_type": origin.actor.type,
        "actor_id": origin.actor.id,
        "request_id": origin.request_id,
        "correlation_id": origin.correlation_id,
        "project_id": origin.project_id,
        "traceparent": origin.traceparent,
        "parent_id": origin.parent_id,
    }


def _encode_options(spec: JobSpec, position: int) -> str:
    """Return the fields that few jobs have."""
    options = {
        "ord": position,
        "payload_ref": spec.payload_ref,
        "payload_hash": spec.payload_hash,
        "subject_id": spec.subject_id,
        "scheduled_for": spec.scheduled_for and spec.scheduled_for.isoformat(),
        "run_identity_hash": spec.run_identity_hash,
        "metadata": spec.metadata,
    }
    return json.dumps({name: value for name, value in options.items() if value is not None})


def _text_array(elements: Iterable[str]) -> str:
    return f"{{{','.join(elements)}}}"


def _array_element(text: str | None) -> str:
    """Return an element of a text array in PostgreSQL's notation."""
    if text is None:
        return "null"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def differing_jobs(count: int, rows: Iterable[Sequence[Any]]) -> Differing:
    """Return the rows of `duly.enqueue_batch`, each at the position of its job."""
    jobs: Differing = [None] * count
    for position, job_id, created in rows:
        jobs[position - 1] = EnqueuedJob(UUID(str(job_id)), bool(created))
    return jobs


async def enqueue_and_commit(
    database: Database,
    org_id: UUID,
    specs: Sequence[JobSpec],
    *,
    wake: Wake | None,
    lock_timeout: timedelta | None = None,
) -> Differing:
    """Write the jobs of one org in a transaction of their own, which may also wake the workers."""
    run = partial(
        database.tenant_statement,
        org_id,
        lock_timeout=lock_timeout,
        notify="duly_ready" if wake == "after commit" else None,
    )
    values: dict[str, Value] = {"org_id": org_id, "wake": wake == "with commit"}
    if len(specs) > 1:
        return differing_jobs(len(specs), await run(statement("jobs/enqueue"), values | _batch_values(specs)))
    [(other,)] = await run(statement("jobs/enqueue_one"), values | _job_values(specs[0]))
    return [other and EnqueuedJob(UUID(other["job_id"]), other["created"])]


async def enqueue_jobs(conn: Connection, org_id: UUID, specs: Sequence[JobSpec]) -> list[EnqueuedJob]:
    """Write the jobs of one org in a session, and return them in order."""
    values = {"org_id": org_id, "wake": False, **encode_batch(specs)}
    cursor = await conn.execute(statement("jobs/enqueue"), values, prepare=True)
    differing = differing_jobs(len(specs), await cursor.fetchall())
    return [job or EnqueuedJob(UUID(spec.job_id), True) for spec, job in zip(specs, differing, strict=True)]


async def read_job(conn: Connection, org_id: UUID, job_id: UUID) -> JobSnapshot | None:
    """Return one job, or None if this org has no job of that id."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("jobs/read"), {"org_id": org_id, "job_id": job_id})
        row = await cursor.fetchone()
    return JobSnapshot.model_validate(row) if row else None


async def read_jobs(conn: Connection, org_id: UUID, job_ids: Sequence[UUID]) -> dict[UUID, JobSnapshot]:
    """Return jobs of an org by their id."""
    found = await rows(conn, "jobs/read_many", {"org_id": org_id, "job_ids": list(job_ids)})
    return {row["job_id"]: JobSnapshot.model_validate(row) for row in found}


async def cancel_job(
    conn: Connection, org_id: UUID, job_id: UUID, *, by: CanceledBy, reason: str, actor: Actor
) -> str | None:
    """Cancel a queued job, or request it from its worker.

    Return `canceled`, `requested` or `finished`, or None if this org has no job of that id.
    """
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


_EVENTS_PAGE_SIZE = 500


@dataclass(frozen=True, slots=True)
class StoredPartial:
    """A partial result with its value, or the reference of its blob."""

    result_seq: int
    chunk_key: str | None
    payload: Any
    payload_ref: str | None
    created_at: datetime


async def read_events_after(conn: Connection, org_id: UUID, job_id: UUID, seq: int) -> list[JobEvent]:
    """Return a page of the events of a job after a number, oldest first."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            statement("events/read_after"),
            {"org_id": org_id, "job_id": job_id, "after_seq": seq, "limit": _EVENTS_PAGE_SIZE},
        )
        return [JobEvent.model_validate(row) async for row in cursor]


async def read_partial_results(conn: Connection, org_id: UUID, job_id: UUID) -> list[StoredPartial]:
    """Return the partial results of a job, oldest first."""
    async with conn.cursor(row_factory=class_row(StoredPartial)) as cursor:
        await cursor.execute(statement("results/read_partials"), {"org_id": org_id, "job_id": job_id})
        return await cursor.fetchall()


async def read_final_result(conn: Connection, org_id: UUID, job_id: UUID) -> tuple[Any, str | None] | None:
    """Return the final result of a job as value and blob reference, if there is one."""
    cursor = await conn.execute(statement("results/read_final"), {"org_id": org_id, "job_id": job_id})
    row = await cursor.fetchone()
    return (row[0], row[1]) if row else None


async def read_event_heads(conn: Connection, keys: Sequence[tuple[UUID, UUID]]) -> list[tuple[int, Status]]:
    """Return the number of the last event and the status of each of these jobs."""
    values = {"org_ids": [org for org, _ in keys], "job_ids": [job for _, job in keys]}
    rows = await (await conn.execute(statement("events/heads"), values)).fetchall()
    found = {row[0]: (row[1], Status(row[2])) for row in rows}
    return [found[number] for number in range(1, len(keys) + 1)]


ResultKind = Literal["partial", "final"]


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A partial or final result with its value, or the reference of its blob."""

    result_kind: ResultKind
    result_seq: int
    chunk_key: str | None
    created_at: datetime
    payload: Any = None
    payload_ref: str | None = None
    large: bool = False
    """Whether the value was left out for its size."""
    summary: dict[str, Any] | None = field(default=None, hash=False)


async def find_result_job(conn: Connection, org_id: UUID, result_id: UUID) -> UUID | None:
    """Return the job of a permalink."""
    row = await first(conn, "results/find", {"org_id": org_id, "result_id": result_id})
    return row["job_id"] if row else None


async def read_result(conn: Connection, org_id: UUID, job_id: UUID, seq: int) -> StoredResult | None:
    """Return one result of a job, unless retention deleted it."""
    row = await first(conn, "results/read", {"org_id": org_id, "job_id": job_id, "seq": seq})
    return StoredResult(**row) if row else None


async def list_results_after(
    conn: Connection, org_id: UUID, job_id: UUID, seq: int, *, limit: int, size: int
) -> list[StoredResult]:
    """Return the next results of a job, without values beyond `size` bytes in total."""
    values = {"org_id": org_id, "job_id": job_id, "after": seq, "limit": limit, "bytes": size}
    return [StoredResult(**row) for row in await rows(conn, "results/list", values)]


async def erase_results(conn: Connection, org_id: UUID, subject_id: str) -> tuple[int, int]:
    """Erase the results of ended jobs about a subject; return the numbers of results and artifacts."""
    row = await first(conn, "results/erase", {"org_id": org_id, "subject_id": subject_id})
    assert row is not None
    return row["snapshots"], row["files"]


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that a job has stored."""

    artifact_id: UUID
    name: str
    content_type: str
    blob_ref: str
    sha256: str
    size: int


async def write_artifact(
    conn: Connection, fence: Mapping[str, Any], file: Artifact, *, keep_for: timedelta | None
) -> Artifact | None:
    """Write an artifact of a held job, or replace that of the same name. None if the lease is lost."""
    values = {name: getattr(file, name) for name in Artifact.__dataclass_fields__}
    cursor = await conn.execute(statement("artifacts/write"), {**fence, **values, "keep_for": keep_for})
    row = await cursor.fetchone()
    return None if row is None else Artifact(row[0], *list(values.values())[1:])


async def list_artifacts(conn: Connection, org_id: UUID, job_id: UUID) -> list[Artifact]:
    """Return the artifacts of a job, by name."""
    cursor = await conn.execute(statement("artifacts/list"), {"org_id": org_id, "job_id": job_id})
    return [Artifact(*row) for row in await cursor.fetchall()]


def new_artifact(name: str, content_type: str, blob_ref: str, sha256: str, size: int) -> Artifact:
    """Return an artifact with a new id, which is not stored yet."""
    return Artifact(uuid4(), name, content_type, blob_ref, sha256, size)


async def read_payload(app: App, conn: Connection, job: JobSnapshot) -> dict[str, Any]:
    """Return the payload of a job from its row, or from its blob if it is large."""
    if job.request_payload_ref is not None:
        blobs = (await app.resources()).blobs
        found = await blobs.get(BlobRef.parse(job.request_payload_ref), org_id=job.org_id)
        loaded: dict[str, Any] = json.loads(found)
        return loaded
    async with conn.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(statement("jobs/read_payload"), {"org_id": job.org_id, "job_id": job.job_id})
        inline: dict[str, Any] = await cursor.fetchone() or {}
        return inline


async def record_audit_entry(
    conn: Connection,
    *,
    org_id: UUID,
    actor: Actor,
    action: str,
    target_type: str,
    target_id: str,
    reason: str | None = None,
    request_id: str | None = None,
    correlation_id: str | None = None,
    detail: Mapping[str, Any] | None = None,
    entry_id: UUID | None = None,
    occurred_at: datetime | None = None,
) -> None:
    """Write an audit entry, in the engine session of the change or in an auditor session.

    With `entry_id` and `occurred_at` the write is idempotent.
    """
    await conn.execute(
        statement("audit/record"),
        {
            "org_id": org_id,
            "entry_id": entry_id,
            "occurred_at": occurred_at,
            "actor_type": actor.type,
            "actor_id": actor.id,
            "action": action,
            "target_type": target_type,
            "target_id": target_id,
            "reason": reason,
            "request_id": request_id,
            "correlation_id": correlation_id,
            "detail": Jsonb(dict(detail or {})),
        },
    )
