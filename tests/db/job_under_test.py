"""A job that tests bring into any status by the statements of clients, workers and the reconciler."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from duly import Status
from duly.core.decide import JobState, decide
from duly.core.job import Actor
from duly.core.outcome import AttemptOutcome
from duly.core.policy import RetryPolicy
from duly.db.database import Database
from duly.jobs import store as job_store
from duly.worker import claim as claims
from duly.worker import settle_store as work
from tests.db.stale_jobs import fail_waiting

WORKER = uuid.uuid4()
ZERO_UUID = uuid.UUID(int=0)


@dataclass
class JobUnderTest:
    """A job that tests bring into any status, and the claim of a worker that once held it."""

    database: Database
    org: uuid.UUID
    job_id: uuid.UUID
    held: claims.ClaimedJob

    async def claim(self, *, gates: bool = True, plain: bool = False) -> list[claims.ClaimedJob]:
        async with self.database.engine() as conn:
            claim = await claims.claim_jobs(
                conn,
                worker_id=WORKER,
                claim_id=uuid.uuid4(),
                lane="q:default",
                slots=5,
                after_org=ZERO_UUID,
                gates=gates,
            )
        if plain:
            [self.held] = claim.jobs
        return claim.jobs

    async def claim_named(self) -> list[claims.ClaimedJob]:
        named = claims.NamedJob("q:default", self.org, 0, self.job_id)
        async with self.database.engine() as conn:
            claim = await claims.claim_named_job(conn, named, worker_id=WORKER, claim_id=uuid.uuid4())
        return claim.jobs

    async def settle(
        self, ending: AttemptOutcome, *, status: Status = Status.RUNNING, attempts: int = 5
    ) -> bool:
        hold = JobState(status, self.held.attempt, self.held.returned)
        decision = decide(hold, ending, RetryPolicy(max_attempts=attempts), datetime.now(UTC), 0.0)
        async with self.database.engine() as conn:
            settled = await work.settle(
                conn, [(self.held, decision)], actor_type="worker", actor_id=str(WORKER)
            )
        return settled == {(self.org, self.job_id, self.held.attempt)}

    async def complete(self) -> bool:
        async with self.database.engine() as conn:
            lost = await work.complete(conn, [(self.held, {"ok": True})], worker_id=WORKER)
        assert lost <= {self.held.key}
        return not lost

    async def complete_plain(self) -> bool:
        async with self.database.engine() as conn:
            other = await work.complete_plain(
                conn, [(self.held, {"ok": True})], claim_ids=[self.held.claim_id]
            )
        assert other <= {self.held.key[:2]}
        return not other

    async def leave_plain_path(self) -> bool:
        await work.leave_plain_path(self.database, [self.held])
        return True

    async def chunk(self) -> bool:
        async with self.database.engine() as conn:
            return (
                await work.store_chunk(conn, self.held, chunk_key="a", payload={"n": 1}, progress_percent=40)
                is not None
            )

    async def cancel(self) -> bool:
        async with self.database.tenant(self.org) as conn:
            answer = await job_store.cancel_job(
                conn, self.org, self.job_id, by="user", reason="enough", actor=Actor.user("u1")
            )
        return answer == "canceled"

    async def reconcile(self) -> bool:
        async with self.database.engine() as conn:
            return await fail_waiting(conn, self.org, self.job_id)
