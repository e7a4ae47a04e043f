"""Lost leases: who is silent for too long loses its jobs, by the same decision and the same statement."""

from __future__ import annotations

import logging
import random
from datetime import datetime, timedelta
from uuid import UUID

from duly.client.app import App
from duly.model.decide import Hold, Transition, decide
from duly.model.outcome import Lost
from duly.model.policy import stored_policy
from duly.store import work, workers
from duly.store.claims import ClaimedJob
from duly.store.session import retrying

log = logging.getLogger("duly.upkeep")
_CLAIMS = 20


class Reaper:
    """Declares silent workers lost, and gives their jobs back to the queue, or to the dead letters."""

    name = "reaper"

    def __init__(self, app: App, every: timedelta = timedelta(seconds=2)) -> None:
        self._app = app
        self._every = every

    async def once(self) -> timedelta:
        """One sweep; zero if there was so much that another should follow."""
        lost = await retrying(self._lose)
        for worker_id in lost:
            log.warning("worker %s is lost: no heartbeat within its lease", worker_id)
        for _ in range(_CLAIMS):
            # One claim is one batch: no more than a statement should settle.
            if not await retrying(self._take_over):
                return self._every
        return timedelta(0)

    async def _lose(self) -> list[UUID]:
        async with (await self._app.ground()).database.engine_session() as conn:
            return await workers.lose_silent(conn)

    async def _take_over(self) -> bool:
        async with (await self._app.ground()).database.engine_session() as conn:
            found = await workers.abandoned(conn, limit=1)
            if found is None:
                return False
            decided = [(job, self._decided(job, hold, found.now)) for job, hold in found.jobs]
            await work.settle(
                conn, decided, actor_type="system", actor_id=self.name, claim_ids=found.claim_ids
            )
        log.warning("%d jobs of lost workers were taken over", len(decided))
        return True

    def _decided(self, job: ClaimedJob, hold: Hold, now: datetime) -> Transition:
        policy = stored_policy(job.policy)
        return decide(hold, Lost(), policy.retry, now, random.random())  # noqa: S311
