"""Jobs that may no longer be believed: where to look for them, and what is known of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.rows import class_row

from duly.model.decide import Hold
from duly.model.freshness import Assessment, Signs, assess
from duly.model.outcome import Canceled
from duly.model.policy import LifecyclePolicy, stored_policy
from duly.model.states import Status
from duly.store.pool import Connection
from duly.store.statements import statement

_USUAL = LifecyclePolicy()
_PARTS = _FOUND = 200


@dataclass(frozen=True, slots=True)
class Suspect:
    """One job with all that speaks for or against it. `policy` is JSON."""

    org_id: UUID
    job_id: UUID
    status: str
    attempt: int
    returned: int
    job_type: str
    queue: str
    priority: int
    run_identity_hash: str | None
    policy: str
    run_at: datetime
    attempt_started_at: datetime | None
    cancel_requested: bool
    canceled_by: Any
    cancel_reason: str | None
    worker_id: UUID | None
    worker_name: str | None
    heartbeat_at: datetime | None
    lease_ends_at: datetime | None
    worker_gone_at: datetime | None
    claimed: bool | None
    """Whether a claim of its worker names it."""
    queued: bool
    """Whether a queue has it."""
    paused: bool
    resumed_at: datetime | None
    """When the last pause ended that kept it from being claimed."""
    reconciled: bool
    looked_at: datetime

    @property
    def key(self) -> tuple[UUID, UUID, int]:
        """The attempt as a value."""
        return (self.org_id, self.job_id, self.attempt)

    @property
    def lifecycle(self) -> LifecyclePolicy:
        """By which it is judged."""
        return stored_policy(self.policy).lifecycle

    @property
    def hold(self) -> Hold:
        """The job as it is, for the decision."""
        asked = Canceled(self.canceled_by, self.cancel_reason or "") if self.cancel_requested else None
        return Hold(Status(self.status), self.attempt, self.returned, asked)

    @property
    def abandoned(self) -> bool:
        """Whether its worker is gone, or silent for longer than its lease."""
        until = self.worker_gone_at or self.lease_ends_at
        return until is None or self.looked_at > until

    def assess(self) -> Assessment:
        """The one judgement, by what was seen when it was looked at."""
        signs = Signs(
            status=Status(self.status),
            runnable_at=max(self.run_at, self.resumed_at or self.run_at),
            attempt_started_at=self.attempt_started_at,
            last_seen_at=self.heartbeat_at,
            # Of a worker that nobody knows, nothing is to be heard.
            lease_ends_at=self.worker_gone_at or self.lease_ends_at or self.attempt_started_at,
            paused=self.paused,
            queued=self.queued,
            reconciled=self.reconciled,
        )
        return assess(signs, self.lifecycle, self.looked_at)


class Part(NamedTuple):
    """A part of the queues."""

    queue: str = ""
    org_id: UUID = UUID(int=0)
    rank: int = -32768


class Step(NamedTuple):
    """A place on the walk around all jobs."""

    org_id: UUID = UUID(int=0)
    job_id: UUID = UUID(int=0)


Found = list[tuple[UUID, UUID]]


async def look(conn: Connection, found: Sequence[tuple[UUID, UUID]]) -> list[Suspect]:
    """What is known of these jobs."""
    values = {"org_ids": [org for org, _ in found], "job_ids": [job for _, job in found]}
    async with conn.cursor(row_factory=class_row(Suspect)) as cursor:
        await cursor.execute(statement("suspects/look"), values)
        return await cursor.fetchall()


async def elsewhere(conn: Connection, job_ids: Sequence[UUID]) -> set[UUID]:
    """Which of these jobs there are, in whatever org."""
    cursor = await conn.execute(statement("suspects/elsewhere"), {"job_ids": list(job_ids)})
    return {row[0] for row in await cursor.fetchall()}


async def waiting(
    conn: Connection, after: Part, *, at_least: timedelta, steps: int, limit: int
) -> tuple[Found, Part | None]:
    """Jobs that wait for too long in some parts of the queues; and where to go on, if not at the start."""
    usual = _USUAL.queued_stale_after.total_seconds()
    values = {**after._asdict(), "at_least": at_least, "usual": usual, "steps": steps, "limit": limit}
    rows = await (await conn.execute(statement("suspects/waiting"), values)).fetchall()
    more = bool(rows) and rows[0][3] >= steps
    found = [(row[4], row[5]) for row in rows if row[4] is not None]
    return found, Part(*rows[0][:3]) if more else None


async def overdue(conn: Connection, *, at_least: timedelta, limit: int) -> Found:
    """Jobs of the future that nobody brought to their queue."""
    usual = _USUAL.queued_stale_after.total_seconds()
    values = {"at_least": at_least, "usual": usual, "limit": limit}
    return await (await conn.execute(statement("suspects/overdue"), values)).fetchall()


async def held(conn: Connection, *, at_least: timedelta, limit: int) -> Found:
    """Jobs whose attempt is older than its horizon."""
    usual = _USUAL.running_stale_after.total_seconds()
    values = {"at_least": at_least, "usual": usual, "limit": limit}
    return await (await conn.execute(statement("suspects/held"), values)).fetchall()


async def lost(conn: Connection, *, limit: int) -> Found:
    """Jobs whose workers are gone, or silent for too long."""
    return await (await conn.execute(statement("suspects/lost"), {"limit": limit})).fetchall()


async def suspicious(conn: Connection, lifecycles: Iterable[LifecyclePolicy]) -> tuple[Found, bool]:
    """Jobs of all orgs that look suspicious, each once; and whether there may be more.

    Up to 200 of each kind. Nothing younger than the strictest of the policies needs a look.
    """
    known = [_USUAL, *lifecycles]
    queued = min(policy.queued_stale_after for policy in known)
    running = min(policy.running_stale_after for policy in known)
    some, end = await waiting(conn, Part(), at_least=queued, steps=_PARTS, limit=_FOUND)
    kinds = [
        some,
        await overdue(conn, at_least=queued, limit=_FOUND),
        await held(conn, at_least=running, limit=_FOUND),
        await lost(conn, limit=_FOUND),
    ]
    found = list(dict.fromkeys(job for kind in kinds for job in kind))
    return found, end is not None or any(len(kind) >= _FOUND for kind in kinds)


async def walk(conn: Connection, after: Step, *, steps: int) -> tuple[Found, Step | None]:
    """Those of the next jobs that are too old, or nowhere; and where to go on, if not at the start."""
    usual = {
        "usual_queued": _USUAL.queued_stale_after.total_seconds(),
        "usual_held": _USUAL.running_stale_after.total_seconds(),
    }
    values = {**after._asdict(), **usual, "steps": steps}
    rows = await (await conn.execute(statement("suspects/walk"), values)).fetchall()
    more = bool(rows) and rows[0][2] >= steps
    found = [(row[3], row[4]) for row in rows if row[3] is not None]
    return found, Step(rows[0][0], rows[0][1]) if more else None
