"""Absurd: tasks without steps, on one queue."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

import psycopg
from absurd_sdk import AsyncAbsurd  # type: ignore[import-not-found]
from absurdctl import BUNDLED_SCHEMA_SQL  # type: ignore[import-not-found]
from bench.peers.adapters._common import Adapter, Gate, board, postgres, run

QUEUE = "bench"
BATCH = 100
CLIENTS = 20
CLAIM_TIMEOUT = 10


async def noop(params: Any, context: Any) -> None:
    """Do nothing."""
    board.noop()


async def stamp(params: Any, context: Any) -> None:
    """Record the latency."""
    board.stamp(params["value"])


async def slow(params: Any, context: Any) -> None:
    """Take one second."""
    board.slow(params["value"])
    await asyncio.sleep(1)


class Peer(Adapter):
    """Tasks spawned by several clients, as a client has one connection."""

    name = "Absurd"
    package = "absurd-sdk"
    settings = (
        f"batches and concurrency of {BATCH}, claim_timeout {CLAIM_TIMEOUT} s; "
        f"no bulk call: {CLIENTS} clients at once"
    )
    persists = "task row and run row with state and result"

    async def prepare(self) -> None:
        """The schema and a new queue."""
        async with await psycopg.AsyncConnection.connect(postgres(), autocommit=True) as conn:
            await conn.execute("drop schema if exists absurd cascade")
            await conn.execute(BUNDLED_SCHEMA_SQL)
            await conn.execute("select absurd.create_queue(%s)", [QUEUE])

    async def empty(self) -> None:
        """Delete all tasks."""
        await self.watching.execute(f"truncate absurd.t_{QUEUE}, absurd.r_{QUEUE}")

    async def open(self) -> None:
        """Connect."""
        self.clients = [AsyncAbsurd(postgres(), queue_name=QUEUE) for _ in range(CLIENTS)]
        for client in self.clients:
            await client.list_queues()
        self.turns = itertools.cycle(self.clients)
        self.watching = await psycopg.AsyncConnection.connect(postgres(), autocommit=True)

    async def close(self) -> None:
        """Disconnect."""
        for client in self.clients:
            await client.close()
        await self.watching.close()

    async def send(self, kind: str, value: int) -> None:
        """One call of the next client."""
        await next(self.turns).spawn(kind, {"value": value}, queue=QUEUE)

    async def send_many(self, kind: str, values: Sequence[int]) -> None:
        """Make single calls, several at once."""
        await self.at_once(CLIENTS, lambda number: self.send(kind, values[number]), len(values))

    async def left(self) -> int:
        """Count the jobs that are not in a final state."""
        found = await self.watching.execute(
            f"select count(*) from absurd.t_{QUEUE} where state not in ('completed', 'failed', 'cancelled')"
        )
        row = await found.fetchone()
        return int(row[0]) if row else 0

    async def work(self, slots: int, gate: Gate) -> None:
        """Run one worker."""
        app = AsyncAbsurd(postgres(), queue_name=QUEUE)
        for handler in (noop, stamp, slow):
            app.register_task(name=handler.__name__)(handler)
        await app.list_queues()
        stop = await gate.ready()
        working = asyncio.create_task(
            app.start_worker(concurrency=min(slots, BATCH), claim_timeout=CLAIM_TIMEOUT)
        )
        await stop.wait()
        app.stop_worker()
        await working
        await app.close()


if __name__ == "__main__":
    run(Peer())
