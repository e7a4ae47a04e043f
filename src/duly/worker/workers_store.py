"""Statements for workers: register, heartbeat, drain, and the jobs that lost workers left."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import TupleRow

from duly.core.decide import JobState
from duly.core.outcome import Canceled
from duly.core.states import Status
from duly.db.pool import Connection
from duly.db.statements import statement
from duly.worker.claim import ClaimedJob
from duly.worker.options import WorkerOptions

# A worker that freezes in the middle of a heartbeat may lock its own row no longer than it may hold its jobs.
_BEAT_SETTINGS = (
    "set local role duly_engine; set local enable_seqscan = off; set local statement_timeout = '10s'; "
    "set local idle_in_transaction_session_timeout = {:.0f}"
)
_MAX_IDLE_SECONDS = 86_400.0
_DEFAULT_LEASE = timedelta(seconds=30)
_NONE_ABSENT: Mapping[UUID, datetime] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """The identity of a worker. Its id is new at every boot; host names and pids repeat."""

    worker_id: UUID
    name: str
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    slots: int
    lease: timedelta

    @classmethod
    def new(cls, options: WorkerOptions) -> WorkerIdentity:
        """Return a new identity for a worker of this process."""
        host, pid = socket.gethostname(), os.getpid()
        return cls(
            worker_id=uuid4(),
            name=options.name or f"{host}:{pid}",
            host=host,
            pid=pid,
            version=version("duly"),
            queues=options.queues,
            slots=options.slots,
            lease=options.lease,
        )


@dataclass(frozen=True, slots=True)
class HeldJobUpdate:
    """A lost lease or a cancel request of a job that a worker holds."""

    key: tuple[UUID, UUID, int]
    lost: bool
    cancel: Canceled | None


class HeartbeatReply(NamedTuple):
    """The answer to a heartbeat."""

    updates: list[HeldJobUpdate]
    """Changes of the jobs that the worker holds."""
    drain: bool
    """Whether an operator has requested a drain."""


@dataclass(slots=True)
class AbandonedJobs:
    """The claims and jobs that a lost worker held."""

    now: datetime
    worker: dict[str, Any] = field(default_factory=dict)
    """The lost worker, its last heartbeat, and the evidence that it is lost."""
    closed: bool = False
    """Whether the worker was declared lost because its connection was closed."""
    claim_ids: list[UUID] = field(default_factory=list)
    jobs: list[tuple[ClaimedJob, JobState]] = field(default_factory=list)


async def register(conn: Connection, worker: WorkerIdentity) -> None:
    """Insert the worker, before it claims its first job."""
    values = {name: getattr(worker, name) for name in WorkerIdentity.__dataclass_fields__}
    await conn.execute(statement("workers/register"), {**values, "queues": list(worker.queues)})


async def unknown_queues(conn: Connection, queues: Sequence[str]) -> list[str]:
    """Return those of the queues that do not exist."""
    cursor = await conn.execute(statement("queues/find_unknown"), {"queues": list(queues)})
    return [row[0] for row in await cursor.fetchall()]


async def request_drain(conn: Connection, worker_id: UUID, *, by: str, reason: str | None) -> bool | None:
    """Request a drain; return False if it was requested before, None if no such worker is alive."""
    values = {"worker_id": worker_id, "by": by, "reason": reason}
    row = await (await conn.execute(statement("workers/request_drain"), values)).fetchone()
    return None if row is None else bool(row[0])


async def stop(conn: Connection, worker_id: UUID) -> None:
    """Mark the worker as stopped."""
    await conn.execute(statement("workers/stop"), {"worker_id": worker_id})


def beat(
    conn: psycopg.Connection[TupleRow],
    worker_id: UUID,
    held: Sequence[tuple[UUID, UUID, int]],
    *,
    draining: bool,
    silence: timedelta | None = None,
    lease: timedelta = _DEFAULT_LEASE,
) -> HeartbeatReply | None:
    """Write a heartbeat and read changes of the held jobs; return None if the worker was declared lost.

    `silence` is how long a worker that is present by this connection may be silent once it is closed.
    Not async: heartbeats have a thread and a connection of their own, so that nothing can delay them.
    """
    with conn.transaction():
        conn.execute(_BEAT_SETTINGS.format(min(max(lease.total_seconds(), 0.001), _MAX_IDLE_SECONDS) * 1000))
        clock = datetime.now(UTC)
        values = {"worker_id": worker_id, "draining": draining, "clock": clock, "silence": silence}
        row = conn.execute(statement("workers/beat"), values).fetchone()
        if row is None:
            return None
        return HeartbeatReply(_read_updates(conn, held) if held else [], bool(row[1]))


def _read_updates(
    conn: psycopg.Connection[TupleRow], held: Sequence[tuple[UUID, UUID, int]]
) -> list[HeldJobUpdate]:
    orgs, jobs, attempts = (list(column) for column in zip(*held, strict=True))
    rows = conn.execute(
        statement("workers/list_held_updates"), {"org_ids": orgs, "job_ids": jobs, "attempts": attempts}
    ).fetchall()
    return [
        HeldJobUpdate((row[0], row[1], row[2]), not row[5], Canceled(row[3], row[4]) if row[5] else None)
        for row in rows
    ]


def hold_presence(conn: psycopg.Connection[TupleRow], worker_id: UUID) -> bool:
    """Mark the worker as present while this connection lives; return False if it leads to a pooler."""
    if conn.execute("select pg_backend_pid()").fetchone() != (conn.info.backend_pid,):
        return False
    # The server must not close it while the process is frozen.
    conn.execute("set idle_session_timeout = 0")
    row = conn.execute(statement("workers/hold_presence"), {"worker_id": worker_id}).fetchone()
    return row is not None and row[1] is True


async def list_absent(conn: Connection) -> dict[UUID, datetime]:
    """Return the silent workers whose connection is gone, and when that was noticed."""
    return dict(await (await conn.execute(statement("workers/list_absent"))).fetchall())


async def declare_lost(
    conn: Connection, absent: Mapping[UUID, datetime] = _NONE_ABSENT
) -> dict[UUID, datetime | None]:
    """Declare workers lost whose lease expired or that are absent; return them, and since when."""
    values = {"absent": list(absent), "since": list(absent.values())}
    return dict(await (await conn.execute(statement("workers/declare_lost"), values)).fetchall())


async def lock_abandoned(
    conn: Connection, *, limit: int, worker_id: UUID | None = None, known: Iterable[UUID] = ()
) -> AbandonedJobs | None:
    """Lock and return what lost workers held, at most `limit` claims; locked until the transaction ends.

    With `worker_id`: what that worker holds unknowingly, which is all its claims but the `known` ones.
    """
    values = {"limit": limit, "worker_id": worker_id, "known": list(known)}
    cursor = await conn.execute(statement("workers/lock_abandoned"), values)
    claim_ids = [row[0] for row in await cursor.fetchall()]
    if not claim_ids:
        return None
    rows = await (
        await conn.execute(statement("workers/read_abandoned"), {"claim_ids": claim_ids})
    ).fetchall()
    abandoned = AbandonedJobs(rows[0][2], _worker(rows[0]), rows[0][20] is not None)
    abandoned.claim_ids = claim_ids
    # Once each: a worker that gave a job back and claimed it again has it in two claims.
    found = {(row[3], row[4], row[5]): row for row in rows if row[3] is not None}
    abandoned.jobs = [(_job(row), _hold(row)) for row in found.values()]
    return abandoned


def _worker(row: Sequence[Any]) -> dict[str, Any]:
    name, heartbeat_at, lease, silence, absent_since = row[16:21]
    if name is None:
        return {"worker_id": str(row[1])}
    evidence = {"last_seen_at": heartbeat_at.isoformat(), "lease_seconds": lease.total_seconds()}
    if absent_since is not None:
        evidence["connection_closed_since"] = absent_since.isoformat()
        evidence["silence_seconds"] = silence and silence.total_seconds()
    return {"worker_id": str(row[1]), "worker": name, **evidence}


def _hold(row: Sequence[Any]) -> JobState:
    cancel_requested, by, reason = row[8:11]
    return JobState(Status(row[7]), row[5], row[6], Canceled(by, reason) if cancel_requested else None)


def _job(row: Sequence[Any]) -> ClaimedJob:
    """Return the job with the fields that settling needs."""
    return ClaimedJob(
        org_id=row[3],
        job_id=row[4],
        attempt=row[5],
        returned=row[6],
        progress_percent=0.0,
        partial_count=0,
        checkpoint=None,
        job_type=row[11],
        queue=row[12],
        priority=row[13],
        project_id=None,
        subject_id=None,
        actor_type="system",
        actor_id="reaper",
        request_id="",
        correlation_id="",
        traceparent=None,
        run_identity_hash=row[14],
        payload="{}",
        payload_ref=None,
        policy=row[15],
        metadata=None,
        claim_id=row[0],
    )
