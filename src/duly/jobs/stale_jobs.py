"""Find jobs that may be stale, and read the evidence by which their freshness is assessed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.rows import class_row

from duly.core.decide import JobState
from duly.core.freshness import Assessment, FreshnessSignals, assess
from duly.core.outcome import Canceled
from duly.core.policy import LifecyclePolicy, parse_stored_policy
from duly.core.states import Status
from duly.db.pool import Connection
from duly.db.statements import statement

_DEFAULT_LIFECYCLE = LifecyclePolicy()
_MAX_STEPS = _MAX_FOUND = 200


@dataclass(frozen=True, slots=True)
class JobEvidence:
    """The evidence by which the freshness of one job is assessed. `policy` is JSON."""

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
    """Whether a claim of its worker contains the job."""
    queued: bool
    """Whether a queue contains the job."""
    paused: bool
    resumed_at: datetime | None
    """The end of the last pause that kept workers from claiming the job."""
    reconciled: bool
    read_at: datetime

    @property
    def key(self) -> tuple[UUID, UUID, int]:
        """The attempt as a value."""
        return (self.org_id, self.job_id, self.attempt)

    @property
    def lifecycle(self) -> LifecyclePolicy:
        """The policy by which freshness is assessed."""
        return parse_stored_policy(self.policy).lifecycle

    @property
    def state(self) -> JobState:
        """The state of the job, for `decide`."""
        request = Canceled(self.canceled_by, self.cancel_reason or "") if self.cancel_requested else None
        return JobState(Status(self.status), self.attempt, self.returned, request)

    @property
    def abandoned(self) -> bool:
        """Whether its worker has stopped, or its lease has expired."""
        until = self.worker_gone_at or self.lease_ends_at
        return until is None or self.read_at > until

    def assess(self) -> Assessment:
        """Assess the freshness of the job when the evidence was read."""
        signals = FreshnessSignals(
            status=Status(self.status),
            runnable_at=max(self.run_at, self.resumed_at or self.run_at),
            attempt_started_at=self.attempt_started_at,
            heartbeat_at=self.heartbeat_at,
            # An unknown worker sends no heartbeats.
            lease_ends_at=self.worker_gone_at or self.lease_ends_at or self.attempt_started_at,
            paused=self.paused,
            queued=self.queued,
            reconciled=self.reconciled,
        )
        return assess(signals, self.lifecycle, self.read_at)


class QueueScanCursor(NamedTuple):
    """The position of a scan over queues, orgs and ranks."""

    queue: str = ""
    org_id: UUID = UUID(int=0)
    rank: int = -32768


class JobScanCursor(NamedTuple):
    """The position of a scan over all jobs."""

    org_id: UUID = UUID(int=0)
    job_id: UUID = UUID(int=0)


JobKeys = list[tuple[UUID, UUID]]
"""Org and id of jobs."""


async def read_evidence(conn: Connection, keys: Sequence[tuple[UUID, UUID]]) -> list[JobEvidence]:
    """Return the evidence of these jobs."""
    values = {"org_ids": [org for org, _ in keys], "job_ids": [job for _, job in keys]}
    async with conn.cursor(row_factory=class_row(JobEvidence)) as cursor:
        await cursor.execute(statement("stale_jobs/read_evidence"), values)
        return await cursor.fetchall()


async def existing_jobs(conn: Connection, job_ids: Sequence[UUID]) -> set[UUID]:
    """Return those of these jobs that exist in any org."""
    cursor = await conn.execute(statement("stale_jobs/list_existing"), {"job_ids": list(job_ids)})
    return {row[0] for row in await cursor.fetchall()}


async def find_stale_queued(
    conn: Connection, after: QueueScanCursor, *, at_least: timedelta, steps: int, limit: int
) -> tuple[JobKeys, QueueScanCursor | None]:
    """Return jobs that are queued for too long, and the next cursor unless the scan is complete."""
    usual = _DEFAULT_LIFECYCLE.queued_stale_after.total_seconds()
    values = {**after._asdict(), "at_least": at_least, "usual": usual, "steps": steps, "limit": limit}
    rows = await (await conn.execute(statement("stale_jobs/find_queued"), values)).fetchall()
    more = bool(rows) and rows[0][3] >= steps
    found = [(row[4], row[5]) for row in rows if row[4] is not None]
    return found, QueueScanCursor(*rows[0][:3]) if more else None


async def find_stale_scheduled(conn: Connection, *, at_least: timedelta, limit: int) -> JobKeys:
    """Return scheduled jobs that are long due, but were never promoted to their queue."""
    usual = _DEFAULT_LIFECYCLE.queued_stale_after.total_seconds()
    values = {"at_least": at_least, "usual": usual, "limit": limit}
    return await (await conn.execute(statement("stale_jobs/find_scheduled"), values)).fetchall()


async def find_stale_running(conn: Connection, *, at_least: timedelta, limit: int) -> JobKeys:
    """Return jobs whose attempt has run for too long."""
    usual = _DEFAULT_LIFECYCLE.running_stale_after.total_seconds()
    values = {"at_least": at_least, "usual": usual, "limit": limit}
    return await (await conn.execute(statement("stale_jobs/find_running"), values)).fetchall()


async def find_lost(conn: Connection, *, limit: int) -> JobKeys:
    """Return jobs whose workers have stopped, or whose leases have expired."""
    return await (await conn.execute(statement("stale_jobs/find_lost"), {"limit": limit})).fetchall()


async def find_stale(conn: Connection, lifecycles: Iterable[LifecyclePolicy]) -> tuple[JobKeys, bool]:
    """Return jobs of all orgs that may be stale, each once, and whether there may be more.

    Up to 200 of each kind. Jobs that are fresh by the strictest of the policies are left out.
    """
    known = [_DEFAULT_LIFECYCLE, *lifecycles]
    queued = min(policy.queued_stale_after for policy in known)
    running = min(policy.running_stale_after for policy in known)
    stale_queued, cursor = await find_stale_queued(
        conn, QueueScanCursor(), at_least=queued, steps=_MAX_STEPS, limit=_MAX_FOUND
    )
    kinds = [
        stale_queued,
        await find_stale_scheduled(conn, at_least=queued, limit=_MAX_FOUND),
        await find_stale_running(conn, at_least=running, limit=_MAX_FOUND),
        await find_lost(conn, limit=_MAX_FOUND),
    ]
    found = list(dict.fromkeys(job for kind in kinds for job in kind))
    return found, cursor is not None or any(len(kind) >= _MAX_FOUND for kind in kinds)


async def scan_jobs(
    conn: Connection, after: JobScanCursor, *, steps: int
) -> tuple[JobKeys, JobScanCursor | None]:
    """Return those of the next jobs that are stale or in no queue, and the next cursor, if any."""
    usual = {
        "usual_queued": _DEFAULT_LIFECYCLE.queued_stale_after.total_seconds(),
        "usual_held": _DEFAULT_LIFECYCLE.running_stale_after.total_seconds(),
    }
    values = {**after._asdict(), **usual, "steps": steps}
    rows = await (await conn.execute(statement("stale_jobs/scan"), values)).fetchall()
    more = bool(rows) and rows[0][2] >= steps
    found = [(row[3], row[4]) for row in rows if row[3] is not None]
    return found, JobScanCursor(rows[0][0], rows[0][1]) if more else None
