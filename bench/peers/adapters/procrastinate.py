"""Procrastinate."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg
from bench.peers.adapters._common import Adapter, Gate, board, postgres, run
from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found]

CONCURRENCY = 100
CONNECTIONS = 20
LARGEST = 1_000


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
    """Tasks of an application, deferred."""

    name = "Procrastinate"
    package = "procrastinate"
    settings = (
        f"concurrency {CONCURRENCY}, pool of {CONNECTIONS}, LISTEN; batch_defer of 1,000 jobs; "
        "without a task of the application's own that retries stalled jobs"
    )
    persists = "job row with its last status, an event row for each change of status"

    def make(self) -> None:
        """Return the application of both sides."""
        connector = PsycopgConnector(conninfo=postgres(), min_size=CONNECTIONS, max_size=CONNECTIONS)
        self.app: Any = App(connector=connector)
        self.tasks = {task.__name__: self.app.task(name=task.__name__)(task) for task in (noop, stamp, slow)}

    async def prepare(self) -> None:
        """The schema, in an empty database."""
        self.make()
        async with self.app.open_async():
            if not await self.app.check_connection_async():
                await self.app.schema_manager.apply_schema_async()
        await self.empty()

    async def empty(self) -> None:
        """Delete all jobs and events."""
        async with await psycopg.AsyncConnection.connect(postgres(), autocommit=True) as conn:
            await conn.execute(
                "truncate procrastinate_jobs, procrastinate_events, procrastinate_periodic_defers"
            )

    async def open(self) -> None:
        """Connect."""
        self.make()
        await self.app.open_async()
        self.watching = await psycopg.AsyncConnection.connect(postgres(), autocommit=True)

    async def close(self) -> None:
        """Disconnect."""
        await self.watching.close()
        await self.app.close_async()

    async def send(self, kind: str, value: int) -> None:
        """Make one call."""
        await self.tasks[kind].defer_async(value=value)

    async def send_many(self, kind: str, values: Sequence[int]) -> None:
        """Batches."""
        for start in range(0, len(values), LARGEST):
            part = values[start : start + LARGEST]
            await self.tasks[kind].batch_defer_async(*({"value": value} for value in part))

    async def left(self) -> int:
        """Count the queued and running jobs."""
        found = await self.watching.execute(
            "select count(*) from procrastinate_jobs where status in ('todo', 'doing')"
        )
        row = await found.fetchone()
        return int(row[0]) if row else 0

    async def work(self, slots: int, gate: Gate) -> None:
        """Run one worker."""
        self.make()
        async with self.app.open_async():
            stop = await gate.ready()
            working = asyncio.create_task(
                self.app.run_worker_async(
                    concurrency=min(slots, CONCURRENCY), install_signal_handlers=False, listen_notify=True
                )
            )
            await stop.wait()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


if __name__ == "__main__":
    run(Peer())
