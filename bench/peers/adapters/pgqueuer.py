"""PgQueuer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import uvloop  # type: ignore[import-not-found]
from bench.peers.adapters._common import Adapter, Gate, board, postgres, run
from pgqueuer import PgQueuer  # type: ignore[import-not-found]
from pgqueuer.db import AsyncpgPoolDriver  # type: ignore[import-not-found]
from pgqueuer.queries import Queries  # type: ignore[import-not-found]

BATCH = 500
LARGEST = 1_000
CONNECTIONS = 10
AT_ONCE = 20
HEARTBEAT = 10
LOOK = 5


async def noop(job: Any) -> None:
    """Do nothing."""
    board.noop()


async def stamp(job: Any) -> None:
    """Record the latency."""
    board.stamp(int(job.payload))


async def slow(job: Any) -> None:
    """Take one second."""
    board.slow(int(job.payload))
    await asyncio.sleep(1)


def pool(size: int = CONNECTIONS) -> Any:
    """Return a pool as documented for parallel work."""
    return asyncpg.create_pool(postgres(), min_size=size, max_size=size)


class Peer(Adapter):
    """The fastest of the queues in Python."""

    name = "PgQueuer"
    package = "pgqueuer"
    settings = (
        f"asyncpg pool of {CONNECTIONS}, batch_size {BATCH}, uvloop, heartbeat_timeout {HEARTBEAT} s, "
        f"dequeue_timeout {LOOK} s; senders have a pool of {AT_ONCE}; bulk calls of 1,000 jobs"
    )
    persists = "job row deleted when done; a log row for each change of status"

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """As in its own benchmark."""
        loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        return loop

    async def prepare(self) -> None:
        """A new schema."""
        async with pool() as connections:
            queries = Queries(AsyncpgPoolDriver(connections))
            if await queries.schema_is_installed():
                await queries.uninstall()
            await queries.install()

    async def open(self) -> None:
        """Connect."""
        self.pool = await pool(AT_ONCE)
        self.queries = Queries(AsyncpgPoolDriver(self.pool))

    async def close(self) -> None:
        """Disconnect."""
        await self.pool.close()

    async def empty(self) -> None:
        """Clear queue and log."""
        await self.queries.clear_queue()
        await self.queries.clear_queue_log()

    async def send(self, kind: str, value: int) -> None:
        """Make one call."""
        await self.queries.enqueue(kind, str(value).encode())

    async def send_many(self, kind: str, values: Sequence[int]) -> None:
        """Lists in one call."""
        for start in range(0, len(values), LARGEST):
            part = values[start : start + LARGEST]
            payloads = [str(value).encode() for value in part]
            await self.queries.enqueue([kind] * len(part), payloads, [0] * len(part))

    async def left(self) -> int:
        """Done jobs leave the table."""
        return int(await self.pool.fetchval("select count(*) from pgqueuer"))

    async def work(self, slots: int, gate: Gate) -> None:
        """One queue manager."""
        async with pool() as connections:
            queue = PgQueuer(AsyncpgPoolDriver(connections))
            for handler in (noop, stamp, slow):
                queue.entrypoint(handler.__name__)(handler)
            stop = await gate.ready()
            working = asyncio.create_task(
                queue.run(
                    batch_size=BATCH,
                    heartbeat_timeout=timedelta(seconds=HEARTBEAT),
                    # While idle it looks for jobs of dead workers at this interval.
                    dequeue_timeout=timedelta(seconds=LOOK),
                )
            )
            await stop.wait()
            queue.shutdown.set()
            await working


if __name__ == "__main__":
    run(Peer())
