"""The engine in one run: enqueue, drain with one and two processes, latency, and claims as the backlog grows.

Everything is on: fsync, records, events, ledger, row level security, fenced finishes, fair claims,
heartbeats. The floor is a bare queue table on the same server, driven by one connection with the same batch
size: claim by delete, nothing else kept. Workers are processes of their own; they wait at a paused queue
until the clock starts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from duly import Actor, Duly, context
from duly.devdb import open_server
from duly.store import claims

SLOTS = 500
ORGS = 20
CLAIM = 100


def make_app(url: str, home: str) -> Duly:
    """The application of both sides."""
    app = Duly(database_url=url, blobs_url=home, pool_min=4)

    @app.job("bench.noop")
    async def noop(number: int) -> None: ...

    @app.job("bench.stamp", critical=True)
    async def stamp(number: int) -> float:
        return time.monotonic()

    return app


async def work(url: str, home: str) -> None:
    """A worker process: says when it is ready, ends when its input is closed."""
    async with make_app(url, home) as app, app.worker(slots=SLOTS):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


@contextmanager
def workers(count: int, url: str, home: str) -> Iterator[None]:
    """So many worker processes."""
    command = [sys.executable, __file__, "--work", url, home]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    try:
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        yield
    finally:
        for process in running:
            process.communicate(timeout=60)


async def enqueue(app: Duly, orgs: list[uuid.UUID], jobs: int, turn: str) -> float:
    """Jobs per second of bulk enqueues, one call for each org."""
    noop = app.registry.get("bench.noop")
    start = time.perf_counter()
    for org in orgs:
        with context(org_id=org, actor=Actor.system("bench")):
            key = f"{turn}-{{}}".format
            await app.enqueue_many(
                [noop.options(idempotency_key=key(n)).call(n) for n in range(jobs // len(orgs))]
            )
    return jobs / (time.perf_counter() - start)


def drain(conn: psycopg.Connection[Any], jobs: int) -> float:
    """Jobs per second from the moment the queue is open until nothing is ready or held."""
    start = time.perf_counter()
    conn.execute("update duly.queues set paused_at = null, paused_by = null where queue = 'q:default'")
    conn.execute("notify duly_ready")
    while conn.execute(
        "select exists (select from duly.ready) or exists (select from duly.claims)"
    ).fetchone()[0]:  # type: ignore[index]
        time.sleep(0.005)
    return jobs / (time.perf_counter() - start)


def pause(conn: psycopg.Connection[Any]) -> None:
    """Let the workers wait."""
    conn.execute("update duly.queues set paused_at = now(), paused_by = 'bench' where queue = 'q:default'")


async def latency(app: Duly, org: uuid.UUID, samples: int) -> list[float]:
    """Milliseconds from the call of enqueue to the start of the handler, one at a time."""
    stamp, found = app.registry.get("bench.stamp"), []
    with context(org_id=org, actor=Actor.system("bench")):
        for number in range(samples):
            start = time.monotonic()
            handle = await stamp.options(idempotency_key=f"stamp-{number}").enqueue(number)
            found.append((await handle.result(timeout=30) - start) * 1000)
    return found


def floor(conn: psycopg.Connection[Any], jobs: int) -> float:
    """Jobs per second of a queue that keeps nothing."""
    conn.execute("create table if not exists bare (id bigserial primary key, payload jsonb)")
    conn.execute("insert into bare (payload) select '{\"n\": 1}' from generate_series(1, %s)", [jobs])
    start, left = time.perf_counter(), jobs
    take = (
        "with c as materialized (select id from bare order by id limit %s for update skip locked) "
        "delete from bare using c where bare.id = c.id returning bare.*"
    )
    while left > 0:
        left -= len(conn.execute(take, [SLOTS]).fetchall())
    return jobs / (time.perf_counter() - start)


def fill(conn: psycopg.Connection[Any], orgs: list[uuid.UUID], backlog: int) -> None:
    """Bring the backlog to this many jobs, spread over the orgs."""
    policy = '{"queue": "q:default", "retry": {"max_attempts": 5}}'
    conn.execute(
        """
        with new as (
            select (%(orgs)s::uuid[])[1 + n %% %(many)s] as org_id, duly.uuid7() as job_id
            from generate_series(1, %(backlog)s - (select count(*) from duly.ready)) n
        ), record as (
            insert into duly.job_records (
                org_id, job_id, result_id, job_type, category, queue, priority, max_attempts, actor_type,
                actor_id, request_id, correlation_id, idempotency_key, payload, payload_hash, policy, run_at,
                created_at)
            select org_id, job_id, job_id, 'bench.noop', 'default', 'q:default', 0, 5, 'system', 'bench',
                   'r', 'r', job_id::text, '{"number": 1}', 'h', %(policy)s, now(), now()
            from new
        ), event as (
            insert into duly.event_log (
                org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id)
            select org_id, job_id, 1, 'job.queued', 'queued', 0, now(), 'system', 'bench' from new
        )
        insert into duly.ready (queue, org_id, rank, job_id) select 'q:default', org_id, 0, job_id from new
        """,
        {"orgs": orgs, "many": len(orgs), "backlog": backlog, "policy": policy},
    )
    conn.execute("vacuum analyze duly.ready")


async def claim_cost(app: Duly, rounds: int) -> list[float]:
    """Milliseconds of a claim, rolled back each time so that the backlog stays what it is."""
    database, found, after = (await app.ground()).database, [], uuid.UUID(int=0)

    class Undo(Exception):
        pass

    for _ in range(rounds):
        try:
            async with database.engine_session() as conn:
                start = time.perf_counter()
                taken = await claims.claim(
                    conn,
                    worker_id=uuid.uuid4(),
                    claim_id=uuid.uuid4(),
                    lane="q:default",
                    slots=CLAIM,
                    after_org=after,
                )
                found.append((time.perf_counter() - start) * 1000)
                after = taken.after_org
                raise Undo
        except Undo:
            continue
    return found


def percentiles(values: list[float]) -> dict[str, float]:
    """The middle and the slow end."""
    ordered = sorted(values)
    return {
        "p50": statistics.median(ordered),
        "p99": ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))],
    }


async def measure(url: str, home: str, jobs: int, rounds: int) -> dict[str, Any]:
    """All figures of one run, taken in turn."""
    orgs = [uuid.uuid4() for _ in range(min(ORGS, jobs))]
    rates: dict[str, list[float]] = {"enqueue": [], "floor": [], "drain 1": [], "drain 2": []}
    figures: dict[str, Any] = {"jobs": jobs}
    with psycopg.connect(url, autocommit=True) as conn:
        async with make_app(url, home) as app:
            for org in orgs:
                await app.create_org(org, "bench")
            jobs -= jobs % len(orgs)
            await enqueue(app, orgs, jobs, "warm")
            for count in (1, 2):
                with workers(count, url, home):
                    drain(conn, jobs)
                    for turn in range(rounds):
                        pause(conn)
                        rates["enqueue"].append(await enqueue(app, orgs, jobs, f"{count}-{turn}"))
                        rates["floor"].append(floor(conn, jobs))
                        rates[f"drain {count}"].append(drain(conn, jobs))
                    if count == 1:
                        figures["latency_ms"] = percentiles(await latency(app, orgs[0], min(200, jobs)))
                    pause(conn)
                    await enqueue(app, orgs, jobs, f"next-{count}")
            figures["claim_ms"] = {}
            for backlog in (jobs // 10, jobs * 10, jobs * 100):
                fill(conn, orgs, backlog)
                figures["claim_ms"][str(backlog)] = percentiles(await claim_cost(app, 20 + 10 * rounds))
    figures["rates"] = rates
    figures["median"] = {name: statistics.median(values) for name, values in rates.items()}
    figures["ratio"] = figures["median"]["drain 1"] / figures["median"]["floor"]
    return figures


def report(figures: dict[str, Any]) -> None:
    """The table."""
    print(f"{figures['jobs']} jobs of {ORGS} orgs, {SLOTS} slots a process; jobs/s, median of the rounds")
    for name, value in figures["median"].items():
        print(f"  {name:<22} {value:>10,.0f}   {' '.join(f'{r:,.0f}' for r in figures['rates'][name])}")
    print(f"  {'drain 1 / floor':<22} {figures['ratio']:>10.2f}")
    print(f"  {'drain 2 / drain 1':<22} {figures['median']['drain 2'] / figures['median']['drain 1']:>10.2f}")
    print("milliseconds, p50 / p99")
    found = figures["latency_ms"]
    print(f"  {'enqueue to start, idle':<22} {found['p50']:>10.1f} / {found['p99']:.1f}")
    for backlog, cost in figures["claim_ms"].items():
        print(f"  {f'claim {CLAIM} of {int(backlog):,}':<22} {cost['p50']:>10.1f} / {cost['p99']:.1f}")


async def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--jobs", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--json", type=Path)
    arguments.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.work:
        await work(*chosen.work)
        return
    with tempfile.TemporaryDirectory() as home:
        server = open_server(Path(home, "pg"))
        Duly(database_url=server.dsn(), blobs_url=home).migrate()
        figures = await measure(server.dsn(), home, chosen.jobs, chosen.rounds)
        server.wait_until_stopped()
    report(figures)
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    asyncio.run(main())
