"""SAQ on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from bench.peers.adapters._common import Adapter, Gate, board, postgres, run
from saq import Queue, Worker  # type: ignore[import-not-found]

CONCURRENCY = 200
AT_ONCE = 20
TIMEOUT = 10
SWEEP = 5


async def noop(context: Any, *, value: int) -> None:
    """Do nothing."""
    board.noop()


async def stamp(context: Any, *, value: int) -> None:
    """Record the latency."""
    board.stamp(value)


async def slow(context: Any, *, value: int) -> None:
    """Take one second."""
    board.slow(value)
    await asyncio.sleep(1)


class Peer(Adapter):
    """One queue of the database."""

    name = "SAQ (PostgreSQL)"
    package = "saq"
    settings = (
        f"concurrency {CONCURRENCY}, pool of 20, LISTEN, timeout {TIMEOUT} s, 3 tries, "
        f"sweep every {SWEEP} s; no bulk call: {AT_ONCE} single ones at once"
    )
    persists = "job row with status and result, kept for ten minutes"

    async def prepare(self) -> None:
        """Connecting makes the tables."""
        await self.open()
        await self.empty()
        await self.close()

    async def open(self) -> None:
        """Connect."""
        self.queue: Any = Queue.from_url(postgres())
        await self.queue.connect()

    async def close(self) -> None:
        """Disconnect."""
        await self.queue.disconnect()

    async def empty(self) -> None:
        """Delete all jobs."""
        async with self.queue.pool.connection() as conn:
            await conn.execute("truncate saq_jobs")

    async def send(self, kind: str, value: int) -> None:
        """Make one call."""
        await self.queue.enqueue(kind, value=value, timeout=TIMEOUT, retries=3)

    async def send_many(self, kind: str, values: Sequence[int]) -> None:
        """Make single calls, several at once."""
        await self.at_once(AT_ONCE, lambda number: self.send(kind, values[number]), len(values))

    async def left(self) -> int:
        """Count the jobs that are not in a final state."""
        async with self.queue.pool.connection() as conn:
            found = await conn.execute(
                "select count(*) from saq_jobs where status not in ('aborted', 'complete', 'failed')"
            )
            return int((await found.fetchone())[0])

    async def work(self, slots: int, gate: Gate) -> None:
        """One worker; it minds SIGTERM itself."""
        await self.open()
        worker = Worker(
            self.queue,
            [noop, stamp, slow],
            concurrency=min(slots, CONCURRENCY),
            timers={"sweep": SWEEP},
        )
        await gate.ready()
        await worker.start()
        await self.close()


if __name__ == "__main__":
    run(Peer())
