"""Taskiq with the broker of taskiq-pg.

The broker receives messages by NOTIFY alone: a message sent without a listener is never run. Its workers
therefore listen as soon as they are ready, and start consuming at "go".
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from bench.peers.adapters._common import Adapter, Gate, board, postgres, run
from taskiq.api import run_receiver_task  # type: ignore[import-not-found]
from taskiq_pg import AsyncpgBroker  # type: ignore[import-not-found]

AT_ONCE = 20
CONNECTIONS = 20


async def noop(value: int) -> None:
    """Do nothing."""
    board.noop()


async def stamp(value: int) -> None:
    """Record the latency."""
    board.stamp(value)


async def slow(value: int) -> None:
    """Take one second."""
    board.slow(value)
    await asyncio.sleep(1)


class Peer(Adapter):
    """One broker."""

    name = "taskiq-pg"
    package = "taskiq-pg"
    settings = (
        f"{CONNECTIONS} connections, as many tasks as slots, listening before the queue is filled; "
        f"no bulk call: {AT_ONCE} single ones at once"
    )
    persists = "nothing: the message is deleted when done"

    def make(self) -> None:
        """The broker of both sides."""
        pool = {"min_size": CONNECTIONS, "max_size": CONNECTIONS}
        self.broker: Any = AsyncpgBroker(postgres(), pool_kwargs=pool)
        self.tasks = {task.__name__: self.broker.task(task.__name__)(task) for task in (noop, stamp, slow)}

    async def prepare(self) -> None:
        """Starting makes the table."""
        await self.open()
        await self.empty()
        await self.close()

    async def open(self) -> None:
        """Connect."""
        self.make()
        await self.broker.startup()

    async def close(self) -> None:
        """Disconnect."""
        await self.broker.shutdown()

    async def empty(self) -> None:
        """Delete all messages."""
        await self.broker.write_pool.execute("truncate taskiq_messages")

    async def send(self, kind: str, value: int) -> None:
        """Make one call."""
        await self.tasks[kind].kiq(value)

    async def send_many(self, kind: str, values: Sequence[int]) -> None:
        """Make single calls, several at once."""
        await self.at_once(AT_ONCE, lambda number: self.send(kind, values[number]), len(values))

    async def left(self) -> int:
        """Messages that were not acknowledged."""
        return int(await self.broker.write_pool.fetchval("select count(*) from taskiq_messages"))

    async def work(self, slots: int, gate: Gate) -> None:
        """One receiver."""
        await self.open()
        stop = await gate.ready()
        working = asyncio.create_task(
            run_receiver_task(self.broker, max_async_tasks=slots, max_prefetch=slots)
        )
        await stop.wait()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await self.close()


if __name__ == "__main__":
    run(Peer())
