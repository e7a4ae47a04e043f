"""Lost leases: who is dead, or silent for too long, loses its jobs, by the usual decision and statement."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from duly.client.app import App
from duly.client.bridge import telling
from duly.model.decide import Hold, Transition, decide
from duly.model.outcome import Lost
from duly.model.policy import stored_policy
from duly.model.reconciliation import ReconciliationKind, ReconciliationRecord
from duly.model.states import Status
from duly.observe import settled
from duly.observe.settled import Settled
from duly.store import work, workers
from duly.store.claims import ClaimedJob
from duly.store.debts import Debt
from duly.store.pool import Connection
from duly.store.session import retrying
from duly.store.workers import Abandoned
from duly.upkeep.absences import Absences
from duly.upkeep.heal import count, tell

log = logging.getLogger("duly.upkeep")
_CLAIMS = 20
_CLOSED = "the connection of its worker was closed, and no heartbeat came any more"
_TELLING = 2.0


class Reaper:
    """Declares dead and silent workers lost; gives their jobs back to the queue, or to the dead letters."""

    name = "reaper"

    def __init__(
        self, app: App, every: timedelta = timedelta(seconds=1), grace: timedelta = timedelta(0)
    ) -> None:
        self._app = app
        self._every = every
        self._grace = grace
        self._in_trouble = False
        self._absences = Absences()

    async def once(self) -> timedelta:
        """One sweep; zero if there was so much that another should follow."""
        if self._in_trouble:
            # While the database was away nobody could send heartbeats: let them come in before we judge.
            self._absences.forget()
            async with (await self._app.ground()).database.engine_session():
                self._in_trouble = False
            return self._grace
        self._in_trouble = True
        delay = await self._sweep()
        self._in_trouble = False
        return delay

    async def _sweep(self) -> timedelta:
        lost = await retrying(self._lose)
        for worker_id, absent_since in lost.items():
            how = f"its connection is closed since {absent_since}" if absent_since else "its lease is over"
            log.warning("worker %s is lost: no heartbeat, and %s", worker_id, how)
        for _ in range(_CLAIMS):
            # One claim is one batch: no more than a statement should settle.
            if not await telling(self._take_over):
                return self._every
        return timedelta(0)

    async def _lose(self) -> dict[UUID, datetime | None]:
        async with (await self._app.ground()).database.engine_session() as conn:
            absent = self._absences.confirmed(await workers.absent(conn), time.monotonic())
            return await workers.lose_silent(conn, absent)

    async def _take_over(self, to_be_told: bool) -> bool:
        ground = await self._app.ground()
        async with ground.database.engine_session() as conn:
            found = await workers.abandoned(conn, limit=1)
            if found is None:
                return False
            decided = [(job, _decided(job, hold, found)) for job, hold in found.jobs]
            kept = await work.settle(
                conn, decided, actor_type="system", actor_id=self.name, claim_ids=found.claim_ids
            )
            taken = [(job, to) for job, to in decided if job.key in kept]
            if to_be_told:
                await self._tell(conn, [job for job, to in taken if to.status is Status.FAILED])
        for _, to in taken:
            if to.record is not None:
                count(to.record)
        settled.count(Settled(job.job_type, job.queue, to, job.attempt - job.returned) for job, to in taken)
        ground.waker.wake()
        log.warning("%d jobs of lost workers were taken over", len(taken))
        return True

    async def _tell(self, conn: Connection, dead: Sequence[ClaimedJob]) -> None:
        """The callbacks of one batch together have little time; the reconciler pays the rest, one by one."""
        until = time.monotonic() + _TELLING
        for job in dead:
            if time.monotonic() > until:
                return
            await tell(self._app, conn, Debt(job.org_id, job.job_id, job.job_type))


def _decided(job: ClaimedJob, hold: Hold, found: Abandoned) -> Transition:
    evidence = {**found.worker, "attempt": job.attempt}
    message = _CLOSED if found.closed else None
    record = ReconciliationRecord.of(ReconciliationKind.LOST_LEASE, evidence, found.now, message=message)
    policy = stored_policy(job.policy)
    lost = Lost(record.message, record)
    return decide(hold, lost, policy.retry, found.now, random.random())  # noqa: S311
