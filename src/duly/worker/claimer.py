"""Taking jobs: as many as there are free slots, from the lanes in their turn."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import psycopg

from duly.model.errors import StoreError
from duly.store import claims
from duly.store.claims import Claim, ClaimedJob, Lane, Sight
from duly.store.session import Database, retrying
from duly.worker.shares import Shares
from duly.worker.tally import Tally

_BATCH = 500
_FEW = 10
_LOOKS = 20
_SHUT = timedelta(milliseconds=250)
_FRESH = 0.05


class Clock:
    """The database's clock, carried on by our own monotonic one: a wrong wall clock does no harm."""

    def __init__(self) -> None:
        self._at: datetime | None = None
        self._since = 0.0
        self._ahead = time.time() - time.monotonic()

    def set(self, now: datetime) -> None:
        """The database just said what time it is."""
        self._at, self._since = now, time.monotonic()
        self._ahead = now.timestamp() - self._since

    def now(self) -> datetime:
        """What time it is there."""
        if self._at is None:
            raise RuntimeError("the database was not asked yet")
        return self._at + timedelta(seconds=time.monotonic() - self._since)

    def minute(self) -> int:
        """The minute it is there, since the epoch; by our own clock as long as the database was not asked."""
        return int((time.monotonic() + self._ahead) // 60)


class Claimer:
    """A round: promote what is due, look, share, claim.

    Each claim is a transaction of its own: who holds the gates of one lane while waiting for those of another
    locks them in another order than everybody else.
    """

    def __init__(
        self, database: Database, queues: tuple[str, ...], clock: Clock, tally: Tally | None = None
    ) -> None:
        self._database = database
        self._tally = tally or Tally()
        self._queues = queues
        self._clock = clock
        self._shares = Shares()
        self._cursors: dict[str, UUID] = {}
        self._saw_lanes = False
        self._seen: list[Lane] = []
        self._seen_at = 0.0
        self._hint: Lane | None = None
        self._hinted = False
        self._trouble: psycopg.Error | StoreError | None = None
        """What went wrong after some jobs were taken: they come first, and it is raised the next time."""
        self.due_in: timedelta | None = None
        """How long until the next job of the future is due, as of the last round."""

    async def round(self, worker_id: UUID, slots: int) -> list[ClaimedJob]:
        """The jobs taken. Fewer than `slots` does not mean that there are no more: ask until none come."""
        if self._trouble is not None:
            trouble, self._trouble = self._trouble, None
            raise trouble
        taken: list[ClaimedJob] = []
        lane, self._hint = self._hint, None
        # Never twice in a row: other lanes and what has become due are found by looking around.
        self._hinted = lane is not None and not self._hinted
        if self._hinted and lane is not None:
            taken = (await self._claim(worker_id, lane, min(slots, _FEW))).jobs
            if taken:
                return taken
        for _ in range(_LOOKS):
            taken, more = await self._look(worker_id, min(slots, _BATCH))
            if taken or not more:
                break
        if self._saw_lanes and not taken:
            # Behind the gates of orgs: when these open, nobody says.
            self.due_in = min(self.due_in or _SHUT, _SHUT)
        return taken

    def hint(self, lane: str) -> None:
        """A single job is said to be ready in this lane: try there first, before looking everywhere."""
        queue, _, job_type = lane.partition("#")
        if queue in self._queues:
            self._hint = Lane(lane, queue, 1, job_type)

    async def _look(self, worker_id: UUID, slots: int) -> tuple[list[ClaimedJob], bool]:
        """What was taken; and, if nothing was, whether a second look may find something."""
        more = bool(self._seen) and time.monotonic() < self._seen_at + _FRESH
        lanes = seen = self._seen if more else await retrying(self._peek)
        self._saw_lanes, self._seen = bool(lanes), []
        while lanes:
            taken: list[ClaimedJob] = []
            shared = self._shares.divide(slots, lanes)
            for lane, share in shared:
                try:
                    claim = await self._claim(worker_id, lane, share)
                except (psycopg.Error, StoreError) as error:
                    if not taken:
                        raise
                    self._trouble = error
                    break
                taken, more = [*taken, *claim.jobs], more or claim.more
            if len(taken) == slots:
                await self._look_ahead(seen)
            if taken:
                return taken, more
            # Their gates are shut, or others were faster: the slots go to the lanes that got none.
            lanes = [lane for lane in lanes if lane not in dict(shared)]
        return [], more

    async def _look_ahead(self, seen: list[Lane]) -> None:
        """Where much was, is more: the next claim then goes out at once, before the jobs of this one run."""
        self._seen = seen
        if time.monotonic() < self._seen_at + _FRESH / 2:
            return
        try:
            self._seen = await retrying(self._peek)
        except (psycopg.Error, StoreError) as error:
            self._trouble = error

    async def _peek(self) -> list[Lane]:
        sight, stuck = await self._sight(), False
        if sight.due_at is not None and sight.due_at <= sight.now:
            async with self._database.engine_statement() as conn:
                # What is due and cannot be moved is held by somebody: there is no use in asking at once.
                stuck = await claims.promote(conn, limit=_BATCH) == 0
            sight = await self._sight()
        self._clock.set(sight.now)
        self._seen_at = time.monotonic()
        self.due_in = None if sight.due_at is None or stuck else sight.due_at - sight.now
        if sight.opens_at is not None:
            self.due_in = min(self.due_in or sight.opens_at - sight.now, sight.opens_at - sight.now)
        return sight.lanes

    async def _sight(self) -> Sight:
        async with self._database.engine_statement() as conn:
            return await claims.peek(conn, self._queues)

    async def _claim(self, worker_id: UUID, lane: Lane, share: int) -> Claim:
        async def once() -> Claim:
            async with self._database.engine_statement() as conn:
                return await claims.claim(
                    conn,
                    worker_id=worker_id,
                    claim_id=uuid4(),
                    lane=lane.name,
                    job_type=lane.job_type,
                    slots=share,
                    after_org=self._cursors.get(lane.name, _random_start()),
                )

        found = await retrying(once)
        self._tally.claimed(lane.queue, found.jobs)
        if found.jobs or lane.name in self._cursors:
            self._cursors[lane.name] = found.after_org
        return found


def _random_start() -> UUID:
    """Workers that start together do not serve the orgs in step."""
    return uuid4()
