"""The rounds: every variant drains the same jobs, in another order each time."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from uuid import UUID

import psycopg
from figures.server import BenchServer

from duly import Actor, Duly, context
from observe.arms import ARMS

ORGS = [UUID(int=number) for number in range(1, 21)]
_TABLES = (
    "ready",
    "claims",
    "scheduled",
    "key_ledger",
    "job_records",
    "job_states",
    "job_ends",
    "event_batches",
    "event_log",
    "result_finals",
)


async def measure(
    server: BenchServer, jobs: int, rounds: int, warm_ups: int
) -> dict[str, dict[str, list[float]]]:
    """Return the jobs per second and the worker's CPU microseconds per job of each variant, per round."""
    url, blobs = server.create("observe"), str(server.home / "blobs")
    app = Duly(database_url=url, blobs_url=blobs)
    async with app:
        for org in ORGS:
            await app.create_org(org, "bench")
    found: dict[str, dict[str, list[float]]] = {
        kind: {name: [] for name in ARMS} for kind in ("rates", "cpu_us")
    }
    names = list(ARMS)
    for turn in range(warm_ups + rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            await _fill(url, blobs, jobs)
            figures = await _drain(name, url, blobs, jobs)
            if turn >= warm_ups:
                for kind, figure in zip(found.values(), figures, strict=True):
                    kind[name].append(figure)
        print(f"round {turn + 1} of {warm_ups + rounds}", file=sys.stderr, flush=True)
    return found


async def _fill(url: str, blobs: str, jobs: int) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("truncate " + ", ".join(f"duly.{table}" for table in _TABLES))
        app = Duly(database_url=url, blobs_url=blobs)

        @app.job("bench.noop")
        async def noop(number: int) -> None: ...

        async with app:
            for first, org in enumerate(ORGS):
                with context(org_id=org, actor=Actor.system("bench")):
                    await app.enqueue_many([noop.call(number) for number in range(first, jobs, len(ORGS))])
        conn.execute("vacuum analyze duly.ready")
        conn.execute("checkpoint")


async def _drain(name: str, url: str, blobs: str, jobs: int) -> list[float]:
    """Run one worker in a process of its own, with its log in a file and its metrics in shared files."""
    program = [sys.executable, Path(__file__).with_name("__main__.py"), "--jobs", str(jobs)]
    pipe = asyncio.subprocess.PIPE
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as lines:
        around = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": folder} if ARMS[name].metrics else None
        worker = await asyncio.create_subprocess_exec(
            *program, "--work", name, url, blobs, stdin=pipe, stdout=pipe, stderr=lines, env=around
        )
        assert worker.stdout is not None
        await worker.stdout.readline()  # it is here
        output, _ = await worker.communicate(b"go\n")
        if worker.returncode:
            lines.seek(0)
            raise RuntimeError(lines.read().decode())
        return [float(figure) for figure in output.split()]
