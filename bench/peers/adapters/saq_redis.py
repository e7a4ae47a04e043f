"""SAQ on Redis: many jobs at once, no results kept, a short time limit so that lost jobs come again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from bench.peers.adapters._common import Adapter, Gate, board, redis, run
from saq import Worker  # type: ignore[import-not-found]
from saq.queue.redis import RedisQueue  # type: ignore[import-not-found]

TIMEOUT = 10
SWEEP = 5
AT_ONCE = 20
MAX_CONCURRENT = 100


async def noop(_context: Any, *, value: int) -> None:
    """Do nothing."""
    board.noop()


async def stamp(_context: Any, *, value: int) -> None:
    """Record the latency."""
    board.stamp(value)


async def slow(_context: Any, *, value: int) -> None:
    """Take one second."""
    board.slow(value)
    await asyncio.sleep(1)


class SaqOnRedis(Adapter):
    """SAQ with its Redis queue."""

    name = "SAQ (Redis)"
    package = "saq"
    store = "Redis"
    settings = (
        f"concurrency = slots up to {MAX_CONCURRENT}, ttl -1, timeout {TIMEOUT} s, 3 tries, "
        f"sweep every {SWEEP} s"
    )
    persists = "nothing: a job that is done is deleted with its result"

    async def open(self) -> None:
        """Connect."""
        self.queue = RedisQueue.from_url(redis(), name="bench")
        await self.queue.connect()

    async def close(self) -> None:
        """Disconnect."""
        await self.queue.disconnect()

    async def prepare(self) -> None:
        """Empty the store."""
        queue = RedisQueue.from_url(redis(), name="bench")
        await queue.redis.flushdb()
        await queue.disconnect()

    async def send(self, kind: str, value: int) -> None:
        """Make one call."""
        await self.queue.enqueue(kind, value=value, timeout=TIMEOUT, retries=3, ttl=-1)

    async def send_many(self, kind: str, values: Sequence[int]) -> None:
        """Make many calls at once: there is no bulk call."""
        await self.at_once(AT_ONCE, lambda index: self.send(kind, values[index]), len(values))

    async def left(self) -> int:
        """Jobs that are still kept; the set of incomplete ones lacks those that are being swept."""
        keys = self.queue.redis.scan_iter(match=self.queue.job_id("*"), count=1000)
        return len({key async for key in keys})

    async def work(self, slots: int, gate: Gate) -> None:
        """Run the worker in this process."""
        await self.open()
        worker = Worker(
            self.queue,
            functions=[noop, stamp, slow],
            concurrency=min(slots, MAX_CONCURRENT),
            timers={"sweep": SWEEP},
            shutdown_grace_period_s=2,
        )
        await gate.ready()
        # It ends at SIGTERM: it replaces the gate's signal handler.
        await worker.start()
        await self.close()


if __name__ == "__main__":
    run(SaqOnRedis())
