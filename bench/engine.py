"""Compare the engine's statements with a bare queue table, in one run.

The bare queue has one table; the claim marks jobs and the completion deletes them: no events, no results, no
tenants. Both use the same number of processes, the same batches and the same driver. All features of the
engine are on, and so are fsync and synchronous_commit. Rounds alternate.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import psycopg

from duly import Actor, Duly, context
from duly.db.database import Database
from duly.db.pool import PoolSize
from duly.embedded import open_server
from duly.worker import claim as claims
from duly.worker import settle_store as work

ORGS = [uuid.UUID(int=number) for number in range(1, 21)]
BARE = """
    create table if not exists bare (
        id bigint generated always as identity primary key, payload jsonb not null, worker text,
        taken_at timestamptz)
"""
TAKE = """
    update bare set worker = 'w', taken_at = now()
    where id = any (array(
        select id from bare where worker is null order by id limit %s for update skip locked))
    returning id, payload::text
"""


def make_app(url: str, home: str) -> Duly:
    """Return the application that enqueues."""
    app = Duly(database_url=url, blobs_url=home)

    @app.job("bench.noop")
    async def noop(number: int) -> None: ...

    return app


async def fill(url: str, home: str, jobs: int, turn: int) -> None:
    """Enqueue this many jobs in both queues."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("truncate bare")
        conn.execute(
            "insert into bare (payload) select '{\"number\": 1}' from generate_series(1, %s)", [jobs]
        )
        conn.execute("create index if not exists bare_waiting on bare (id) where worker is null")
        async with make_app(url, home) as app:
            noop = app.registry.get("bench.noop")
            for org in ORGS:
                with context(org_id=org, actor=Actor.system("bench")):
                    part = [noop.call(number * 1_000 + turn) for number in range(jobs // len(ORGS))]
                    await app.enqueue_many(part)
        conn.execute("vacuum analyze bare")
        conn.execute("vacuum analyze duly.ready")
        conn.execute("checkpoint")


async def drive_floor(url: str, batch: int) -> int:
    """Claim and delete until the bare queue is empty; return the number of jobs."""
    done = 0
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as conn:
        wait_for_the_clock()
        while rows := await (await conn.execute(TAKE, [batch], prepare=True)).fetchall():
            await conn.execute(
                "delete from bare where id = any (%s)", [[row[0] for row in rows]], prepare=True
            )
            done += len(rows)
    return done


async def drive_engine(url: str, batch: int) -> int:
    """Claim and complete with the engine's statements until the queue is empty; return the number of jobs."""
    done, worker_id, after = 0, uuid.uuid4(), uuid.uuid4()
    async with Database(url, size=PoolSize(1, 1), engine_only=True) as database:
        async with database.engine_autocommit() as conn:
            await conn.execute("select")
        wait_for_the_clock()
        while True:
            claim_id = uuid.uuid4()
            async with database.engine_autocommit() as conn:
                taken = await claims.claim_jobs(
                    conn,
                    worker_id=worker_id,
                    claim_id=claim_id,
                    lane="q:default",
                    slots=batch,
                    after_org=after,
                )
            if not taken.jobs:
                return done
            after = taken.after_org
            async with database.engine_autocommit() as conn:
                ended = [(job, None) for job in taken.jobs]
                await work.complete(conn, ended, worker_id=worker_id, claim_ids=[claim_id])
            done += len(taken.jobs)


async def rate(kind: str, url: str, batch: int, processes: int) -> float:
    """Return the jobs per second, from when all processes are connected until the last finds no job."""
    command = [sys.executable, __file__, "--drive", kind, url, str(batch)]
    pipe = asyncio.subprocess.PIPE
    drivers = [
        await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe) for _ in range(processes)
    ]
    for driver in drivers:
        assert driver.stdout is not None
        await driver.stdout.readline()
    start = time.monotonic()
    outputs = await asyncio.gather(*(driver.communicate(b"go\n") for driver in drivers))
    ends = [out.split() for out, _ in outputs]
    return sum(int(done) for done, _ in ends) / (max(float(at) for _, at in ends) - start)


def wait_for_the_clock() -> None:
    """Wait until all processes are connected."""
    print("here", flush=True)
    sys.stdin.readline()


async def drive(kind: str, url: str, batch: int) -> None:
    """Run one process; return its number of jobs and its end on the shared clock."""
    done = await (drive_floor if kind == "floor" else drive_engine)(url, batch)
    print(done, time.monotonic())


async def measure(url: str, home: str, jobs: int, rounds: int) -> list[dict[str, Any]]:
    """Measure every batch size with one and with two processes."""
    app, found = make_app(url, home), []
    app.migrate()
    async with app:
        for org in ORGS:
            await app.create_org(org, "bench")
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(BARE)
    turn = 0
    for processes in (1, 2):
        for batch in (10, 100, 500):
            rates: dict[str, list[float]] = {"floor": [], "engine": []}
            for _ in range(rounds):
                turn += 1
                await fill(url, home, jobs, turn)
                for kind in rates:
                    rates[kind].append(await rate(kind, url, batch, processes))
            middle = {kind: statistics.median(values) for kind, values in rates.items()}
            ratio = middle["engine"] / middle["floor"]
            found.append({"processes": processes, "batch": batch, **middle, "ratio": ratio})
    return found


def report(found: list[dict[str, Any]]) -> None:
    """Print the table."""
    print("claim and finish, jobs/s, median of the rounds")
    print(f"{'processes':>9} {'batch':>6} {'floor':>9} {'engine':>9} {'ratio':>6}")
    for row in found:
        print(
            f"{row['processes']:>9} {row['batch']:>6} {row['floor']:>9,.0f} {row['engine']:>9,.0f} "
            f"{row['ratio']:>6.2f}"
        )


async def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--jobs", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--json", type=Path)
    arguments.add_argument("--drive", nargs=3, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.drive:
        await drive(chosen.drive[0], chosen.drive[1], int(chosen.drive[2]))
        return
    with tempfile.TemporaryDirectory() as home:
        server = open_server(Path(home, "pg"))
        found = await measure(server.dsn(), home, chosen.jobs, chosen.rounds)
        server.wait_until_stopped()
    report(found)
    if chosen.json:
        chosen.json.write_text(json.dumps({"ratio": found[-1]["ratio"], "rows": found}, indent=2))


if __name__ == "__main__":
    asyncio.run(main())
