"""Oban for Python, without the parts that are sold."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Sequence
from typing import Any

import uvloop  # type: ignore[import-not-found]
from bench.peers.adapters._common import Adapter, Gate, board, postgres, run
from oban import Oban, worker  # type: ignore[import-not-found]
from oban.schema import install  # type: ignore[import-not-found]

QUEUE = "bench"
LIMIT = 100
CONNECTIONS = 10
AT_ONCE = 20
RESCUE_AFTER = 10
LOOK = 5


@worker(queue=QUEUE)
class Noop:
    """Do nothing."""

    async def process(self, job: Any) -> None:
        """Record the start."""
        board.noop()


@worker(queue=QUEUE)
class Stamp:
    """Record the latency."""

    async def process(self, job: Any) -> None:
        """Record the start."""
        board.stamp(job.args["value"])


@worker(queue=QUEUE)
class Slow:
    """Take one second."""

    async def process(self, job: Any) -> None:
        """Record the start, and wait."""
        board.slow(job.args["value"])
        await asyncio.sleep(1)


KINDS: dict[str, Any] = {"noop": Noop, "stamp": Stamp, "slow": Slow}


class Peer(Adapter):
    """One instance: a client without queues, or a worker with one."""

    name = "Oban for Python"
    package = "oban"
    settings = (
        f"Python {platform.python_version()}, uvloop, limit = slots up to {LIMIT}, pool of {CONNECTIONS}, "
        f"rescue_after {RESCUE_AFTER} s, looked for every {LOOK} s; senders have a pool of {AT_ONCE}; "
        "all jobs in one bulk call"
    )
    persists = "the job's row with its last state, errors and attempts, kept a day"

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """As its own command."""
        loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        return loop

    async def prepare(self) -> None:
        """The schema, in an empty database."""
        async with await Oban.create_pool(postgres()) as pool:
            await install(pool)
            await clear(pool)

    async def open(self) -> None:
        """Connect."""
        self.pool = await Oban.create_pool(postgres(), min_size=AT_ONCE, max_size=AT_ONCE)
        self.oban = await Oban(pool=self.pool).start()

    async def close(self) -> None:
        """Disconnect."""
        await self.oban.stop()
        await self.pool.close()

    async def empty(self) -> None:
        """Delete all jobs."""
        await clear(self.pool)

    async def send(self, kind: str, value: int) -> None:
        """Make one call."""
        await self.oban.enqueue(KINDS[kind].new({"value": value}))

    async def send_many(self, kind: str, values: Sequence[int]) -> None:
        """All in one transaction."""
        await self.oban.enqueue_many(KINDS[kind].new({"value": value}) for value in values)

    async def left(self) -> int:
        """Count the queued and running jobs."""
        async with self.pool.connection() as conn:
            found = await conn.execute(
                "select count(*) from oban_jobs where state not in ('completed', 'discarded', 'cancelled')"
            )
            return int((await found.fetchone())[0])

    async def work(self, slots: int, gate: Gate) -> None:
        """Run one worker."""
        async with await Oban.create_pool(postgres(), min_size=CONNECTIONS, max_size=CONNECTIONS) as pool:
            oban = Oban(
                pool=pool,
                queues={QUEUE: min(slots, LIMIT)},
                lifeline={"interval": LOOK, "rescue_after": RESCUE_AFTER},
            )
            stop = await gate.ready()
            async with oban:
                await stop.wait()


async def clear(pool: Any) -> None:
    """Delete all jobs."""
    async with pool.connection() as conn:
        await conn.execute("truncate oban_jobs")


if __name__ == "__main__":
    run(Peer())
