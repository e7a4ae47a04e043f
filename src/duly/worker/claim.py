"""Claim jobs: as many as there are free slots, shared between lanes by weight."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from functools import partial
from math import floor
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import TupleRow

from duly.core.errors import StoreError
from duly.core.job import Actor, ActorType
from duly.core.policy import CRITICAL_QUEUE
from duly.db.clock import Clock
from duly.db.database import Database, retry_transaction
from duly.db.pool import Connection
from duly.db.statements import statement
from duly.worker.metrics import WorkerMetrics

_MAX_JOBS_PER_CLAIM = 500
_MAX_JOBS_PER_HINT = 10
_MAX_PEEKS_PER_ROUND = 20
_CLOSED_GATE_PAUSE = timedelta(milliseconds=250)
_PEEK_TTL = 0.05
_GATES_REMEMBERED = 2.0


class Lane(NamedTuple):
    """A queue, or the part of a queue that belongs to a job type with a limit."""

    name: str
    queue: str
    weight: int
    job_type: str


class NamedJob(NamedTuple):
    """The key of a job in its queue, as a notification names it."""

    lane: str
    org_id: UUID
    rank: int
    job_id: UUID

    @classmethod
    def parse(cls, notification: str) -> NamedJob | None:
        """Return the job that a notification names: `<lane> <org> <rank> <job>`."""
        try:
            lane, org_id, rank, job_id = notification.split(" ")
            return cls(lane, UUID(org_id), int(rank), UUID(job_id))
        except ValueError:
            return None


class LaneSnapshot(NamedTuple):
    """The lanes with runnable jobs, by the database's clock."""

    lanes: list[Lane]
    now: datetime
    due_at: datetime | None
    """When the next scheduled job becomes runnable."""
    opens_at: datetime | None
    """When a rate-limited gate lets the next job pass."""


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
    """Seconds between the moment the job could have started and its claim."""
    left_jobs: set[UUID] | None = None
    """The jobs of its claim that left the plain path; None if the claim is not on it."""

    @property
    def actor(self) -> Actor:
        """The actor that enqueued the job."""
        return Actor(ActorType(self.actor_type), self.actor_id)

    @property
    def is_plain(self) -> bool:
        """Whether its claim is all that was written for this attempt: it has no state row."""
        left = self.left_jobs
        return left is not None and (not left or self.job_id not in left)

    @property
    def fence(self) -> dict[str, Any]:
        """The values that fence every write of this attempt."""
        return {"org_id": self.org_id, "job_id": self.job_id, "attempt": self.attempt}

    @property
    def key(self) -> tuple[UUID, UUID, int]:
        """The identity of the attempt."""
        return (self.org_id, self.job_id, self.attempt)


# Rows of a claim have the fields of a job up to its policy, then these three, then those of `Claim`.
_PLAIN = ClaimedJob._fields.index("policy")
_LAST = _PLAIN + 3


class Claim(NamedTuple):
    """The jobs of one claim, and the org after which the next claim of the lane continues."""

    jobs: list[ClaimedJob]
    after_org: UUID
    more: bool
    """Whether the lane may have claimable jobs although this claim returned none."""


async def peek_lanes(conn: Connection, queues: Sequence[str]) -> LaneSnapshot:
    """Return the lanes of these queues that have runnable jobs."""
    cursor = await conn.execute(statement("jobs/peek"), {"queues": list(queues)}, prepare=True)
    rows = await cursor.fetchall()
    lanes = [Lane(*row[:4]) for row in rows if row[0] is not None]
    return LaneSnapshot(lanes, rows[0][4], rows[0][5], rows[0][6])


async def claim_jobs(
    conn: Connection,
    *,
    worker_id: UUID,
    claim_id: UUID,
    lane: str,
    slots: int,
    after_org: UUID,
    job_type: str = "",
    max_orgs: int = 1000,
    gates: bool = True,
) -> Claim:
    """Claim up to `slots` runnable jobs of a lane, round-robin over the orgs after `after_org`.

    One call visits at most `max_orgs` orgs. Without `gates` it is cheaper, but where a gate stands it claims
    nothing, and returns `more`; and new jobs take the plain path, with a claim of their own.
    """
    plain_claim_id = uuid4()
    values: dict[str, Any] = {
        "worker_id": worker_id,
        "claim_id": claim_id,
        "lane": lane,
        "slots": slots,
        "after_org": after_org,
        "max_orgs": max_orgs,
    }
    if gates:
        cursor = await conn.execute(statement("jobs/claim"), {**values, "job_type": job_type}, prepare=True)
    else:
        values["plain_claim_id"] = plain_claim_id
        cursor = await conn.execute(statement("jobs/claim_open"), values, prepare=True)
    rows = await cursor.fetchall()
    if not rows:
        return Claim([], after_org, more=False)
    return Claim(_jobs(rows, claim_id, plain_claim_id), *rows[0][-2:])


async def claim_named_job(conn: Connection, job: NamedJob, *, worker_id: UUID, claim_id: UUID) -> Claim:
    """Claim the job that a notification named, unless it is gone or a gate might hold it back."""
    values = {"worker_id": worker_id, "claim_id": claim_id, **job._asdict()}
    cursor = await conn.execute(statement("jobs/claim_named"), values, prepare=True)
    return Claim(_jobs(await cursor.fetchall(), claim_id, claim_id), job.org_id, more=False)


def _jobs(rows: Sequence[TupleRow], claim_id: UUID, plain_claim_id: UUID) -> list[ClaimedJob]:
    """Return the jobs of the rows. A row without a policy has the policy of the row before it."""
    jobs, policy, left_jobs = [], "", set[UUID]()
    for row in rows:
        plain, waited, new_policy = row[_PLAIN:_LAST]
        policy = new_policy or policy
        claim = (policy, plain_claim_id, waited, left_jobs) if plain else (policy, claim_id, waited, None)
        if row[0] is not None:
            jobs.append(ClaimedJob._make(row[:_PLAIN] + claim))
    return jobs


async def promote_due(conn: Connection, *, limit: int) -> int:
    """Make due scheduled jobs runnable; return how many."""
    cursor = await conn.execute(statement("jobs/promote"), {"limit": limit})
    return cursor.rowcount


class LaneShares:
    """Divides free slots between lanes by weight; remainders carry over, so no lane starves."""

    def __init__(self) -> None:
        self._owed: dict[str, float] = {}

    def divide(self, slots: int, lanes: Sequence[Lane]) -> list[tuple[Lane, int]]:
        """Return the slots per lane, critical lanes first, then by weight; their sum is `slots`."""
        if not lanes:
            return []
        ordered = sorted(lanes, key=lambda lane: (lane.queue != CRITICAL_QUEUE, -lane.weight, lane.name))
        siblings = Counter(lane.queue for lane in ordered)
        weights = {lane.name: Fraction(lane.weight, siblings[lane.queue]) for lane in ordered}
        total = sum(weights.values())
        due = {name: slots * weight / total for name, weight in weights.items()}
        shares = {name: floor(whole) for name, whole in due.items()}
        # A lane without jobs loses what it is owed: idle lanes do not save up.
        owed = {name: self._owed.get(name, 0.0) + float(due[name] - shares[name]) for name in due}
        for _ in range(slots - sum(shares.values())):
            first = max(owed, key=owed.__getitem__)
            shares[first] += 1
            owed[first] -= 1
        # Lanes that left took their debts along; the bound keeps those that stay within reach of new ones.
        self._owed = {name: min(part, len(owed)) for name, part in owed.items()}
        return [(lane, shares[lane.name]) for lane in ordered if shares[lane.name] > 0]


class Claimer:
    """Claims in rounds: promote due jobs, peek at the lanes, divide the slots, claim.

    Each claim is a transaction of its own: one that held the gates of a lane while waiting for those of
    another would lock them in a different order than other workers.
    """

    def __init__(
        self, database: Database, queues: tuple[str, ...], clock: Clock, metrics: WorkerMetrics | None = None
    ) -> None:
        self._database = database
        self._metrics = metrics or WorkerMetrics()
        self._queues = queues
        self._clock = clock
        self._shares = LaneShares()
        self._cursors: dict[str, UUID] = {}
        self._had_lanes = False
        self._lanes: list[Lane] = []
        self._peeked_at = 0.0
        self._gated_until: dict[str, float] = {}
        """The lanes in which a claim met a gate lately, and until when claims look at the gates at once."""
        self._hint: Lane | NamedJob | None = None
        self._hinted = False
        self._deferred_error: psycopg.Error | StoreError | None = None
        """An error after some jobs were claimed: they are returned first, the next round raises it."""
        self.due_in: timedelta | None = None
        """Time until the next scheduled job is due, as of the last round."""

    async def round(self, worker_id: UUID, slots: int) -> list[ClaimedJob]:
        """Claim up to `slots` jobs. Fewer does not mean that no more exist: repeat until none come."""
        if self._deferred_error is not None:
            error, self._deferred_error = self._deferred_error, None
            raise error
        jobs: list[ClaimedJob] = []
        hint, self._hint = self._hint, None
        # Never two hints in a row: only a peek finds other lanes and due jobs.
        self._hinted = hint is not None and not self._hinted
        if self._hinted and hint is not None:
            jobs = await self._follow(hint, worker_id, slots)
            if jobs:
                return jobs
        for _ in range(_MAX_PEEKS_PER_ROUND):
            jobs, more = await self._claim_from_lanes(worker_id, min(slots, _MAX_JOBS_PER_CLAIM))
            if jobs or not more:
                break
        if self._had_lanes and not jobs:
            # The jobs are behind the gates of orgs, which open without a notification.
            self.due_in = min(self.due_in or _CLOSED_GATE_PAUSE, _CLOSED_GATE_PAUSE)
        return jobs

    def hint(self, notification: str) -> None:
        """Try the job that a notification names first in the next round, or the lane that it names."""
        job = NamedJob.parse(notification)
        lane = notification if job is None else job.lane
        queue, _, job_type = lane.partition("#")
        if queue in self._queues:
            self._hint = job if job is not None and not job_type else Lane(lane, queue, 1, job_type)

    async def _follow(self, hint: Lane | NamedJob, worker_id: UUID, slots: int) -> list[ClaimedJob]:
        """Claim the job of a hint, or some of the lane of a hint."""
        if isinstance(hint, Lane):
            return (await self._claim(worker_id, hint, min(slots, _MAX_JOBS_PER_HINT))).jobs

        async def once() -> Claim:
            async with self._database.engine_autocommit("claim") as conn:
                return await claim_named_job(conn, hint, worker_id=worker_id, claim_id=uuid4())

        claim = await retry_transaction(once)
        if claim.jobs:
            self._metrics.claimed(hint.lane, claim.jobs)
        return claim.jobs

    async def _claim_from_lanes(self, worker_id: UUID, slots: int) -> tuple[list[ClaimedJob], bool]:
        """Return the claimed jobs and, if there are none, whether another peek may find some."""
        more = bool(self._lanes) and time.monotonic() < self._peeked_at + _PEEK_TTL
        lanes = peeked = self._lanes if more else await retry_transaction(self._peek)
        self._had_lanes, self._lanes = bool(lanes), []
        while lanes:
            jobs: list[ClaimedJob] = []
            shares = self._shares.divide(slots, lanes)
            for lane, share in shares:
                try:
                    claim = await self._claim(worker_id, lane, share)
                except (psycopg.Error, StoreError) as error:
                    if not jobs:
                        raise
                    self._deferred_error = error
                    break
                jobs, more = [*jobs, *claim.jobs], more or claim.more
            if len(jobs) == slots:
                await self._peek_ahead(peeked)
            if jobs:
                return jobs, more
            # Their gates are closed, or other workers were faster: the slots go to the lanes that got none.
            lanes = [lane for lane in lanes if lane not in dict(shares)]
        return [], more

    async def _peek_ahead(self, lanes: list[Lane]) -> None:
        """Prepare the next claim after a full one, so that it is sent before the jobs of this one run."""
        self._lanes = lanes
        if time.monotonic() < self._peeked_at + _PEEK_TTL / 2:
            return
        try:
            self._lanes = await retry_transaction(self._peek)
        except (psycopg.Error, StoreError) as error:
            self._deferred_error = error

    async def _peek(self) -> list[Lane]:
        snapshot, stuck = await self._snapshot(), False
        if snapshot.due_at is not None and snapshot.due_at <= snapshot.now:
            async with self._database.engine_autocommit("claim") as conn:
                # Due jobs that cannot be promoted are locked by another transaction: do not retry at once.
                stuck = await promote_due(conn, limit=_MAX_JOBS_PER_CLAIM) == 0
            snapshot = await self._snapshot()
        self._clock.set(snapshot.now)
        self._peeked_at = time.monotonic()
        self.due_in = None if snapshot.due_at is None or stuck else snapshot.due_at - snapshot.now
        if snapshot.opens_at is not None:
            opens_in = snapshot.opens_at - snapshot.now
            self.due_in = min(self.due_in or opens_in, opens_in)
        return snapshot.lanes

    async def _snapshot(self) -> LaneSnapshot:
        async with self._database.engine_autocommit("claim") as conn:
            return await peek_lanes(conn, self._queues)

    async def _claim(self, worker_id: UUID, lane: Lane, share: int) -> Claim:
        async def once(gates: bool) -> Claim:
            async with self._database.engine_autocommit("claim") as conn:
                return await claim_jobs(
                    conn,
                    worker_id=worker_id,
                    claim_id=uuid4(),
                    lane=lane.name,
                    job_type=lane.job_type,
                    slots=share,
                    after_org=self._cursors.get(lane.name, _random_start()),
                    gates=gates,
                )

        gates = bool(lane.job_type) or time.monotonic() < self._gated_until.get(lane.name, 0.0)
        claim = await retry_transaction(partial(once, gates))
        if not gates and claim.more:
            self._gated_until[lane.name] = time.monotonic() + _GATES_REMEMBERED
            claim = await retry_transaction(partial(once, True))
        self._metrics.claimed(lane.queue, claim.jobs)
        if claim.jobs or lane.name in self._cursors:
            self._cursors[lane.name] = claim.after_org
        return claim


def _random_start() -> UUID:
    """Return a random cursor: workers that start together must not serve the orgs in step."""
    return uuid4()
