"""Taking jobs: which lanes have some, who gets how many, and what is due."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.rows import TupleRow

from duly.model.job import Actor, ActorType
from duly.store.pool import Connection
from duly.store.statements import statement


class Lane(NamedTuple):
    """A queue, or the part of it that belongs to a job type with a gate."""

    name: str
    queue: str
    weight: int
    job_type: str


class Sight(NamedTuple):
    """What there is to do, by the database's clock."""

    lanes: list[Lane]
    now: datetime
    due_at: datetime | None
    """When the next job of the future becomes runnable."""
    opens_at: datetime | None
    """When a gate that lets through so many a second lets the next one pass."""


class ClaimedJob(NamedTuple):
    """A job as its claim returned it. `payload` and `policy` are JSON."""

    org_id: UUID
    job_id: UUID
    attempt: int
    returned: int
    progress_percent: float
    partial_count: int
    checkpoint: Any
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
    payload: str
    payload_ref: str | None
    metadata: dict[str, Any] | None
    policy: str
    claim_id: UUID
    waited: float = 0.0
    """Seconds from when it could have started until it was claimed."""

    @property
    def actor(self) -> Actor:
        """Who asked for it."""
        return Actor(ActorType(self.actor_type), self.actor_id)

    @property
    def fence(self) -> dict[str, Any]:
        """What every write of this attempt is checked against."""
        return {"org_id": self.org_id, "job_id": self.job_id, "attempt": self.attempt}

    @property
    def key(self) -> tuple[UUID, UUID, int]:
        """The attempt as a value."""
        return (self.org_id, self.job_id, self.attempt)


class Claim(NamedTuple):
    """The jobs of one claim, and the org at which the next one of this lane goes on."""

    jobs: list[ClaimedJob]
    after_org: UUID
    more: bool
    """Whether there may be something although nothing was taken."""


async def peek(conn: Connection, queues: Sequence[str]) -> Sight:
    """Look which lanes have runnable jobs."""
    cursor = await conn.execute(statement("jobs/peek"), {"queues": list(queues)}, prepare=True)
    rows = await cursor.fetchall()
    lanes = [Lane(*row[:4]) for row in rows if row[0] is not None]
    return Sight(lanes, rows[0][4], rows[0][5], rows[0][6])


async def claim(
    conn: Connection,
    *,
    worker_id: UUID,
    claim_id: UUID,
    lane: str,
    slots: int,
    after_org: UUID,
    job_type: str = "",
    sight: int = 1000,
) -> Claim:
    """Take up to `slots` runnable jobs of a lane, in turn from the orgs after the one served last.

    It passes `sight` orgs at most.
    """
    cursor = await conn.execute(
        statement("jobs/claim"),
        {
            "worker_id": worker_id,
            "claim_id": claim_id,
            "lane": lane,
            "job_type": job_type,
            "slots": slots,
            "after_org": after_org,
            "sight": sight,
        },
        prepare=True,
    )
    rows = await cursor.fetchall()
    return Claim(_jobs(rows, claim_id), *rows[0][-2:]) if rows else Claim([], after_org, more=False)


def _jobs(rows: Sequence[TupleRow], claim_id: UUID) -> list[ClaimedJob]:
    """The jobs of the rows. One that tells no policy has that of the row before it."""
    jobs, policy = [], ""
    for *own, waited, told, _, _ in rows:
        policy = told or policy
        if own[0] is not None:
            jobs.append(ClaimedJob._make((*own, policy, claim_id, waited)))
    return jobs


async def promote(conn: Connection, *, limit: int) -> int:
    """Make the jobs runnable whose time has come; how many."""
    cursor = await conn.execute(statement("jobs/promote"), {"limit": limit})
    return cursor.rowcount
