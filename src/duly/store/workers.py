"""Workers as the database knows them: their heartbeats, what they hear, and what lost ones left behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from psycopg.rows import TupleRow

from duly.model.decide import Hold
from duly.model.outcome import Canceled
from duly.model.states import Status
from duly.store.claims import ClaimedJob
from duly.store.pool import Connection
from duly.store.statements import statement

# A worker that stands still in the middle of a heartbeat may hold its own row no longer than its jobs.
_BEATING = (
    "set local role duly_engine; set local enable_seqscan = off; set local statement_timeout = '10s'; "
    "set local idle_in_transaction_session_timeout = {:.0f}"
)
_A_DAY = 86_400.0
_USUAL_LEASE = timedelta(seconds=30)
_NOBODY: Mapping[UUID, datetime] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a worker is. The id is fresh at every boot; a host name and a pid come again."""

    worker_id: UUID
    name: str
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    slots: int
    lease: timedelta


@dataclass(frozen=True, slots=True)
class News:
    """What a worker hears about a job it holds."""

    key: tuple[UUID, UUID, int]
    lost: bool
    cancel: Canceled | None


class Heard(NamedTuple):
    """What a heartbeat brings back."""

    news: list[News]
    """Of the jobs that the worker holds."""
    drain: bool
    """Whether an operator wants it to drain."""


@dataclass(slots=True)
class Abandoned:
    """What a lost worker held, claim by claim."""

    now: datetime
    worker: dict[str, Any] = field(default_factory=dict)
    """Who left it, when it was last heard of, and how one knows that it is lost."""
    closed: bool = False
    """Whether its connection was found closed, before its lease was over or not."""
    claim_ids: list[UUID] = field(default_factory=list)
    jobs: list[tuple[ClaimedJob, Hold]] = field(default_factory=list)


async def register(conn: Connection, who: Identity) -> None:
    """Make a worker known before it claims anything."""
    values = {name: getattr(who, name) for name in Identity.__dataclass_fields__}
    await conn.execute(statement("workers/register"), {**values, "queues": list(who.queues)})


async def unknown_queues(conn: Connection, queues: Sequence[str]) -> list[str]:
    """Which of these there are none of."""
    cursor = await conn.execute(statement("queues/unknown"), {"queues": list(queues)})
    return [row[0] for row in await cursor.fetchall()]


async def ask_to_drain(conn: Connection, worker_id: UUID, *, by: str, reason: str | None) -> bool | None:
    """Note that an operator wants it to drain; False if it does so already, None if no such worker lives."""
    values = {"worker_id": worker_id, "by": by, "reason": reason}
    row = await (await conn.execute(statement("workers/ask_to_drain"), values)).fetchone()
    return None if row is None else bool(row[0])


async def stop(conn: Connection, worker_id: UUID) -> None:
    """Say goodbye."""
    await conn.execute(statement("workers/stop"), {"worker_id": worker_id})


def beat(
    conn: psycopg.Connection[TupleRow],
    worker_id: UUID,
    held: Sequence[tuple[UUID, UUID, int]],
    *,
    draining: bool,
    silence: timedelta | None = None,
    lease: timedelta = _USUAL_LEASE,
) -> Heard | None:
    """One heartbeat, and what is new of the held jobs; None if the worker was declared lost.

    `silence` is for a worker that is present by this connection: how long it may be silent without it.
    Not async: heartbeats have a thread and a connection of their own, so that nothing can hold them up.
    """
    with conn.transaction():
        conn.execute(_BEATING.format(min(max(lease.total_seconds(), 0.001), _A_DAY) * 1000))
        clock = datetime.now(UTC)
        values = {"worker_id": worker_id, "draining": draining, "clock": clock, "silence": silence}
        row = conn.execute(statement("workers/beat"), values).fetchone()
        if row is None:
            return None
        return Heard(_hear(conn, held) if held else [], bool(row[1]))


def _hear(conn: psycopg.Connection[TupleRow], held: Sequence[tuple[UUID, UUID, int]]) -> list[News]:
    orgs, jobs, attempts = (list(column) for column in zip(*held, strict=True))
    rows = conn.execute(
        statement("workers/hear"), {"org_ids": orgs, "job_ids": jobs, "attempts": attempts}
    ).fetchall()
    return [
        News((row[0], row[1], row[2]), not row[5], Canceled(row[3], row[4]) if row[5] else None)
        for row in rows
    ]


def attend(conn: psycopg.Connection[TupleRow], worker_id: UUID) -> bool:
    """Be present for as long as this connection lives; False if it leads to a pooler, which has its own."""
    if conn.execute("select pg_backend_pid()").fetchone() != (conn.info.backend_pid,):
        return False
    # The server must not end it while the worker stands still.
    conn.execute("set idle_session_timeout = 0")
    row = conn.execute(statement("workers/attend"), {"worker_id": worker_id}).fetchone()
    return row is not None and row[1] is True


async def absent(conn: Connection) -> dict[UUID, datetime]:
    """The silent workers whose connection is gone, and when that was found."""
    return dict(await (await conn.execute(statement("workers/absent"))).fetchall())


async def lose_silent(
    conn: Connection, absent: Mapping[UUID, datetime] = _NOBODY
) -> dict[UUID, datetime | None]:
    """Declare the workers lost whose lease ran out, and those that are absent: which, and since when."""
    values = {"absent": list(absent), "since": list(absent.values())}
    return dict(await (await conn.execute(statement("workers/lose"), values)).fetchall())


async def abandoned(
    conn: Connection, *, limit: int, worker_id: UUID | None = None, known: Iterable[UUID] = ()
) -> Abandoned | None:
    """What lost workers held, at most `limit` claims of it, locked until the transaction ends.

    With a worker, what that one holds without knowing it: all its claims but the known ones.
    """
    values = {"limit": limit, "worker_id": worker_id, "known": list(known)}
    cursor = await conn.execute(statement("workers/abandoned"), values)
    rows = await cursor.fetchall()
    if not rows:
        return None
    found = Abandoned(rows[0][2], _worker(rows[0]), rows[0][20] is not None)
    found.claim_ids = list(dict.fromkeys(row[0] for row in rows))
    found.jobs = [(_job(row), _hold(row)) for row in rows if row[3] is not None]
    return found


def _worker(row: Sequence[Any]) -> dict[str, Any]:
    name, heartbeat_at, lease, silence, absent_since = row[16:21]
    if name is None:
        return {"worker_id": str(row[1])}
    seen = {"last_seen_at": heartbeat_at.isoformat(), "lease_seconds": lease.total_seconds()}
    if absent_since is not None:
        seen["connection_closed_since"] = absent_since.isoformat()
        seen["silence_seconds"] = silence and silence.total_seconds()
    return {"worker_id": str(row[1]), "worker": name, **seen}


def _hold(row: Sequence[Any]) -> Hold:
    asked, by, reason = row[8:11]
    return Hold(Status(row[7]), row[5], row[6], Canceled(by, reason) if asked else None)


def _job(row: Sequence[Any]) -> ClaimedJob:
    """As much of the job as settling it needs."""
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
