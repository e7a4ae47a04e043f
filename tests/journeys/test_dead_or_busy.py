"""A dead worker loses its jobs within seconds; a busy one keeps them, however busy it is."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from duly import Actor, Duly, Handle, context
from duly.maintenance import reaper as reaper_module
from duly.maintenance.reaper import Reaper
from duly.testing import FreshDatabase
from tests.journeys.plain_worker import make_app
from tests.worker.working import until

JOBS = 20
PROMISED = timedelta(seconds=10)
HEARTBEAT = 0.5
BUSY = 7.0
"""Much longer than a worker with such heartbeats can be absent."""


@contextmanager
def worker(fresh: FreshDatabase, tmp_path: Path, *beats: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.journeys.plain_worker", fresh.direct_url, str(tmp_path), *beats]
    root = Path(__file__).parents[2]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)
    try:
        assert _line(process) == "ready"
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


@contextmanager
def busy_machine() -> Iterator[None]:
    """Keep all processors busy."""
    with ExitStack() as stack:
        for _ in range((os.cpu_count() or 1) + 1):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(process.kill)
        yield


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


async def _enqueue(app: Duly, *calls: tuple[str, float]) -> list[Handle[Any]]:
    org = uuid.uuid4()
    await app.create_org(org, "Acme")
    with context(org_id=org, actor=Actor.user("u1")):
        return await app.enqueue_many([app.registry.get(name).call(value) for name, value in calls])


async def test_the_jobs_of_a_killed_worker_start_again_within_ten_seconds(
    fresh: FreshDatabase, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    app = make_app(fresh.direct_url, str(tmp_path))
    handles = await _enqueue(app, *[("plain.hang", n) for n in range(JOBS)])
    with worker(fresh, tmp_path) as victim:
        for _ in range(JOBS):
            assert await asyncio.to_thread(_line, victim) == "started 1"
        await until(sql, "select silence is not null from duly.workers")
        async with app.worker() as other:
            await other.loop_events.wait("idle")
            [killed_at] = sql.execute("select clock_timestamp()").fetchone() or ()
            victim.kill()
            assert [await handle.result(60) for handle in handles] == [2] * JOBS
    started = "select count(*), max(occurred_at) from duly.event_log where event_type = 'job.started'"
    again = sql.execute(f"{started} and attempt = 2").fetchone() or ()
    assert again[0] == JOBS
    assert again[1] - killed_at <= PROMISED
    for handle in handles:
        [record] = (await handle.status()).reconciliations
        assert "connection_closed_since" in record.evidence
    await app.close()


async def test_a_busy_worker_keeps_its_jobs_although_it_is_silent(
    fresh: FreshDatabase, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    app = make_app(fresh.direct_url, str(tmp_path), maintenance=False)
    silent = timedelta(0)
    with worker(fresh, tmp_path, str(HEARTBEAT)) as busy, busy_machine():
        await until(sql, "select silence is not null from duly.workers")
        handles = await _enqueue(app, ("plain.spin", BUSY), ("plain.grip", BUSY))
        waiting = asyncio.gather(*(handle.result(60) for handle in handles))
        reaper = Reaper(app)
        while not waiting.done():
            await asyncio.wait([waiting], timeout=(await reaper.once()).total_seconds() / 4)
            [age] = sql.execute("select max(now() - heartbeat_at) from duly.workers").fetchone() or ()
            silent = max(silent, age)
        assert await waiting == [1, 1]
        assert [_line(busy) for _ in handles] == ["started 1"] * 2
    assert silent.total_seconds() > 2 * HEARTBEAT + reaper_module._CONFIRM_SECONDS + 1, (
        "it was silent for long enough"
    )
    assert sql.execute("select count(*), count(lost_at) from duly.workers").fetchone() == (1, 0)
    await app.close()
