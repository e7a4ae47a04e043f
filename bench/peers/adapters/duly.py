"""Duly with all features on: records, events, ledger, row level security, fencing, fair claims of orgs."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import psycopg
from bench.peers.adapters._common import Adapter, Gate, board, postgres, run

from duly import Actor, Duly, Job, context

ORGS = [UUID(int=number) for number in range(1, 21)]
BATCH = 1_000
IN_A_ROW = 250
TABLES = (
    *("ready", "claims", "scheduled", "key_ledger", "job_records", "job_states", "job_ends"),
    *("event_log", "event_batches", "active_runs"),
)


class Ours(Adapter):
    """The system that the others are compared with."""

    name = "Duly"
    package = "duly"
    settings = (
        "twice the slots, up to 20 orgs, maintenance on, default leases and heartbeats; "
        "bulk calls of 1,000 jobs, org after org; "
        "single calls 250 of an org, so that those that meet are one write"
    )
    persists = "record, state, an event for every step, idempotency ledger, audit chain"

    def __init__(self) -> None:
        self.orgs = itertools.cycle(ORGS)
        self.keys = itertools.count()
        self.calls = itertools.count()

    def app(self) -> tuple[Duly, dict[str, Job[[int], None]]]:
        """Return the application of both sides."""
        blobs = Path(os.environ["BENCH_BOARD"]).parent / "blobs"
        app = Duly(database_url=postgres(), blobs_url=str(blobs), pool_min=1)

        @app.job("bench.noop")
        async def noop(number: int) -> None:
            board.noop()

        @app.job("bench.stamp")
        async def stamp(sent_ns: int) -> None:
            board.stamp(sent_ns)

        @app.job("bench.slow")
        async def slow(number: int) -> None:
            board.slow(number)
            await asyncio.sleep(1)

        return app, {"noop": noop, "stamp": stamp, "slow": slow}

    async def prepare(self) -> None:
        """Migrate, create the orgs, and delete all jobs."""
        app, _ = self.app()
        await asyncio.to_thread(app.migrate)
        async with app:
            for org in ORGS:
                await app.create_org(org, "bench")
        await self.empty()

    async def empty(self) -> None:
        """Delete all jobs."""
        async with await psycopg.AsyncConnection.connect(postgres(), autocommit=True) as conn:
            await conn.execute("truncate " + ", ".join(f"duly.{table}" for table in TABLES))

    async def open(self) -> None:
        """Connect."""
        self.client, self.jobs = self.app()
        await self.client.resources()
        self.watching = await psycopg.AsyncConnection.connect(postgres(), autocommit=True)

    async def close(self) -> None:
        """Disconnect."""
        await self.watching.close()
        await self.client.close()

    async def send(self, kind: str, value: int) -> None:
        """Make one call. Concurrent calls belong to one org, because other systems have no orgs."""
        with context(org_id=ORGS[next(self.calls) // IN_A_ROW % len(ORGS)], actor=Actor.system("bench")):
            # The key of a job derives from its arguments; only the warm-up stamps are all equal.
            job = self.jobs[kind] if value else self.jobs[kind].options(idempotency_key=self.key())
            await job.enqueue(value)

    def key(self) -> str:
        """Return an unused key."""
        return f"{os.getpid()}-{next(self.keys)}"

    async def send_many(self, kind: str, values: Sequence[int]) -> None:
        """One call for each thousand, as with PgQueuer, org after org."""
        job = self.jobs[kind]
        for start in range(0, len(values), BATCH):
            with context(org_id=next(self.orgs), actor=Actor.system("bench")):
                await self.client.enqueue_many([job.call(value) for value in values[start : start + BATCH]])

    async def left(self) -> int:
        """Count the jobs that are ready, delayed or claimed."""
        found = await self.watching.execute(
            "select (select count(*) from duly.ready where org_id = any(%(orgs)s)) "
            "+ (select count(*) from duly.scheduled where org_id = any(%(orgs)s)) "
            "+ (select count(*) from duly.claims, unnest(org_ids) held where held = any(%(orgs)s))",
            {"orgs": ORGS},
        )
        row = await found.fetchone()
        return int(row[0]) if row else 0

    async def work(self, slots: int, gate: Gate) -> None:
        """Run one worker."""
        app, _ = self.app()
        async with app:
            # Twice as many slots, so that the next jobs are claimed while the last ones run.
            worker = app.worker(slots=2 * slots)
            stop = await gate.ready()
            async with worker:
                await stop.wait()


if __name__ == "__main__":
    run(Ours())
