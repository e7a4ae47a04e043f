"""The bill of a job: CPU microseconds of client or worker and of the server, and bytes of WAL, step by step.

Counts CPU time, not seconds: a busy machine makes the wall clock lie. The server is an embedded one with
fsync and synchronous_commit on; its CPU time is that of all its processes, read from /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.figures.meter import Cost, Meter
from bench.figures.server import open_bench_server
from bench.growth.fill import fill_history

from duly import Actor, Duly, context
from duly.cli.garbage_collector import tune_for_worker
from duly.db.database import Database
from duly.db.pool import PoolSize
from duly.worker import claim as claims
from duly.worker import settle_store

_DISK = "disk: "
_HISTORY = 15
"""Ended jobs in the database of `history`, for each job of a round."""
_LONE, _HISTORY_BATCH = 20, 100
"""Parts of a round that are measured one at a time, and with a history."""
REFERENCE = Path(__file__).parents[1] / "src/duly/features/doctor/reference.json"
ORGS = [uuid.UUID(int=number) for number in range(1, 21)]


def make_app(url: str, home: str) -> Duly:
    """Return the application under test: one job type that does nothing."""
    app = Duly(database_url=url, blobs_url=home)

    @app.job("bench.noop")
    async def noop(number: int) -> None: ...

    return app


async def enqueue(app: Duly, jobs: int, batch: int, start: int) -> None:
    """Enqueue this many jobs in batches, org after org."""
    noop = app.registry.get("bench.noop")
    for number in range(0, jobs, batch):
        with context(org_id=ORGS[number // batch % len(ORGS)], actor=Actor.system("bench")):
            await app.enqueue_many([noop.call(start + number + i) for i in range(min(batch, jobs - number))])


async def bulk(url: str, home: str, meter: Meter, jobs: int) -> dict[str, Cost]:
    """Measure enqueue, claim and finish at large batches, with the statements of a worker."""
    costs = {}
    async with make_app(url, home) as app:
        await enqueue(app, 2_000, 1_000, 1_000_000_000)
        meter.checkpoint()
        before = meter.table_bytes()
        meter.start()
        await enqueue(app, jobs, 1_000, 0)
        costs["enqueue, batches of 1,000"] = meter.cost(jobs)
    costs |= await steps(url, meter, jobs, 500, "batches of 500")
    sizes = {
        table: tuple((now - then) / jobs for now, then in zip(size, before[table], strict=True))
        for table, size in meter.table_bytes().items()
    }
    costs["bytes on disk"] = Cost(0, 0, sum(total for total, _ in sizes.values()))
    return costs | {f"{_DISK}{table}": Cost(0, 0, *size) for table, size in sizes.items() if any(size)}


async def steps(url: str, meter: Meter, jobs: int, batch: int, name: str) -> dict[str, Cost]:
    """Claim jobs, then finish them, and measure both."""
    worker_id, after, taken = uuid.uuid4(), uuid.uuid4(), []
    async with Database(url, size=PoolSize(1, 1), engine_only=True) as database:

        async def claim() -> claims.Claim:
            async with database.engine_autocommit() as conn:
                return await claims.claim_jobs(
                    conn,
                    worker_id=worker_id,
                    claim_id=uuid.uuid4(),
                    lane="q:default",
                    slots=batch,
                    after_org=after,
                    gates=False,
                )

        async def finish(part: claims.Claim) -> None:
            done, claim_ids = [(job, None) for job in part.jobs], {job.claim_id for job in part.jobs}
            async with database.engine_autocommit() as conn:
                if part.jobs[0].is_plain:
                    await settle_store.complete_plain(conn, done, claim_ids=claim_ids)
                else:
                    await settle_store.complete(conn, done, worker_id=worker_id, claim_ids=claim_ids)

        for _ in range(2):
            part = await claim()
            after = part.after_org
            await finish(part)
        meter.checkpoint()
        meter.start()
        count = 0
        while count < jobs and (part := await claim()).jobs:
            after = part.after_org
            taken.append(part)
            count += len(part.jobs)
        costs = {f"claim, {name}": meter.cost(count)}
        meter.checkpoint()
        meter.start()
        for part in taken:
            await finish(part)
        costs[f"finish, {name}"] = meter.cost(count)
    return costs


async def lone(url: str, home: str, meter: Meter, jobs: int) -> dict[str, Cost]:
    """Measure enqueue, claim and finish one job at a time."""
    async with make_app(url, home) as app:
        await enqueue(app, 20, 1, 2_000_000_000)
        meter.checkpoint()
        meter.start()
        await enqueue(app, jobs, 1, 3_000_000_000)
        costs = {"enqueue, one": meter.cost(jobs)}
    return costs | await steps(url, meter, jobs, 1, "one")


async def history(url: str, home: str, meter: Meter, jobs: int) -> dict[str, Cost]:
    """Measure enqueue with large indexes after a checkpoint: nearly every random key is on another page."""
    fill_history(url, ORGS, jobs * _HISTORY_BATCH * _HISTORY)
    async with make_app(url, home) as app:
        await enqueue(app, 100, 10, 5_000_000_000)
        meter.checkpoint()
        meter.start()
        await enqueue(app, jobs, max(jobs // len(ORGS), 1), 6_000_000_000)
    return {"enqueue into history": meter.cost(jobs)}


async def drain(url: str, home: str, meter: Meter, jobs: int) -> dict[str, Cost]:
    """Measure a whole worker in a process of its own, from its start until the last job is done."""
    async with make_app(url, home) as app:
        await enqueue(app, jobs, 1_000, 4_000_000_000)
    meter.checkpoint()
    meter.start()
    command = [sys.executable, __file__, "--work", url, home, str(jobs)]
    worker = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    output, _ = await worker.communicate()
    return {"drain by a worker": meter.cost(jobs, json.loads(output)["cpu"])}


async def work(url: str, home: str, jobs: int) -> None:
    """Run a worker until it has settled so many jobs; print its CPU time."""
    before = time.process_time()
    app = make_app(url, home)
    async with app, app.worker(slots=500) as worker:
        tune_for_worker()
        await worker.loop_events.wait("settled", jobs)
    sys.stdout.write(json.dumps({"cpu": (time.process_time() - before) * 1e6}))


def run(jobs: int, rounds: int) -> dict[str, list[Cost]]:
    """Measure every step in several rounds, each in a new database."""
    costs: dict[str, list[Cost]] = {}
    measures: dict[str, tuple[Callable[..., Any], int]] = {
        "bulk": (bulk, jobs),
        "lone": (lone, max(jobs // _LONE, 100)),
        "history": (history, max(jobs // _HISTORY_BATCH, 1)),
        "drain": (drain, jobs),
    }
    with open_bench_server() as server:
        for number in range(rounds):
            for name, (measure, size) in measures.items():
                url = server.create(f"{name}{number}")
                with psycopg.connect(url, autocommit=True) as conn:
                    conn.cursor().executemany(
                        "insert into duly.organizations (org_id, name) values (%s, %s)",
                        [(org, str(org)) for org in ORGS],
                    )
                meter = Meter(url)
                for step, cost in asyncio.run(measure(url, str(server.home), meter, size)).items():
                    costs.setdefault(step, []).append(cost)
                meter.close()
                server.drop(f"{name}{number}")
    return costs


def main() -> None:
    """Print the bill."""
    parser = argparse.ArgumentParser(prog="./dev bench bill", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--jobs", type=int, default=20_000, help="jobs a round")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; the median of each figure is printed")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument(
        "--reference", metavar="MACHINE", help="write the reference figures of `duly doctor --capacity`"
    )
    parser.add_argument("--work", nargs=3, metavar=("URL", "HOME", "JOBS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        asyncio.run(work(*options.work[:2], int(options.work[2])))
        return
    medians = {
        step: Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))
        for step, costs in run(options.jobs, options.rounds).items()
    }
    print(f"{'for one job':<30}{'client, us':>12}{'server, us':>12}{'WAL, bytes':>12}{'images of it':>14}")
    for step, cost in medians.items():
        if not step.startswith(_DISK):
            print(f"{step:<30}" + "{:>12.1f}{:>12.1f}{:>12,.0f}{:>14,.0f}".format(*cost))
    steps = {step: cost._asdict() for step, cost in medians.items() if not step.startswith(_DISK)}
    if options.json:
        options.json.write_text(json.dumps(steps, indent=2))
    if options.reference:
        disk = {
            step.removeprefix(_DISK): cost[2:] for step, cost in medians.items() if step.startswith(_DISK)
        }
        document = {"machine": options.reference, "jobs": options.jobs, "rounds": options.rounds}
        REFERENCE.write_text(json.dumps({**document, "steps": steps, "disk": disk}, indent=2) + "\n")


if __name__ == "__main__":
    main()
