"""Workers that are killed, or stopped for longer than their lease: nothing is lost or written twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from duly import Actor, Duly, Status, context
from duly.maintenance.reaper import Reaper
from duly.testing import FreshDatabase
from duly.worker.job_log import REFUSED_LINE_SEQ
from tests.journeys.worker_process import make_app

JOBS = 100


@pytest.fixture
def app(fresh: FreshDatabase, tmp_path: Path) -> Duly:
    return make_app(fresh.url, fresh.direct_url, str(tmp_path / "blobs"))


@contextmanager
def worker(fresh: FreshDatabase, tmp_path: Path, slots: int = JOBS) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.journeys.worker_process", fresh.url, fresh.direct_url]
    process = subprocess.Popen(
        [*command, str(tmp_path / "blobs"), str(slots)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert _line(process) == "ready"
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


async def _sweep(app: Duly, sql: psycopg.Connection) -> None:
    """Wait until the silent worker's jobs are back in the queue, which takes its lease."""
    lost = "exists (select from duly.workers where lost_at is not null)"
    waiting = f"select exists (select from duly.claims) or not {lost}"
    while sql.execute(waiting).fetchone() == (True,):
        await Reaper(app).once()


async def _enqueue(
    app: Duly, org: uuid.UUID, ledger: Path, jobs: int, name: str = "step.hang"
) -> list[uuid.UUID]:
    await app.create_org(org, "Acme")
    hang = app.registry.get(name)
    with context(org_id=org, actor=Actor.user("u1")):
        handles = await app.enqueue_many([hang.call(str(ledger), n) for n in range(jobs)])
    return [handle.job_id for handle in handles]


async def test_the_jobs_of_a_killed_worker_run_again(
    app: Duly, fresh: FreshDatabase, sql: psycopg.Connection, tmp_path: Path
) -> None:
    org, ledger = uuid.uuid4(), tmp_path / "ledger"
    jobs = await _enqueue(app, org, ledger, JOBS)
    with worker(fresh, tmp_path) as process:
        for _ in range(JOBS):
            assert await asyncio.to_thread(_line, process) == "started 1"
        process.kill()
        await asyncio.to_thread(process.wait)
    await _sweep(app, sql)
    async with app.worker():
        ended = [await app.handle(job, org_id=org).wait(timeout=60) for job in jobs]
    assert {(job.status, job.attempt) for job in ended} == {(Status.COMPLETED, 2)}
    runs = Counter(line.split()[0] for line in ledger.read_text().splitlines())
    assert runs == {str(n): 2 for n in range(JOBS)}, "each job ran twice, by an outside count"
    lost = sql.execute("select count(*) from duly.event_log where event_type = 'job.lease_lost'").fetchone()
    assert lost == (JOBS,)
    await app.close()


@pytest.mark.parametrize("name", ["step.hang", "step.hasty"])
async def test_a_worker_that_slept_through_its_lease_changes_nothing_when_it_wakes(
    app: Duly, fresh: FreshDatabase, sql: psycopg.Connection, tmp_path: Path, name: str
) -> None:
    org, ledger = uuid.uuid4(), tmp_path / "ledger"
    [job] = await _enqueue(app, org, ledger, 1, name)
    with worker(fresh, tmp_path, slots=1) as process:
        assert await asyncio.to_thread(_line, process) == "started 1"
        os.kill(process.pid, signal.SIGSTOP)
        await _sweep(app, sql)
        async with app.worker():
            assert await app.handle(job, org_id=org).result(timeout=30) == "attempt 2"
        before = _history(sql)
        os.kill(process.pid, signal.SIGCONT)
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        assert await asyncio.to_thread(_line, process) == "lost"
        process.stdin.close()
        assert await asyncio.to_thread(process.wait, 60) == 0, "it drains and leaves in good order"
    assert _history(sql) == before
    [line] = (await app.jobs.logs(org, job)).lines
    assert (line.attempt, line.level, line.line_seq) == (1, "warning", REFUSED_LINE_SEQ)
    assert await app.handle(job, org_id=org).result() == "attempt 2"
    await app.close()


def _history(sql: psycopg.Connection) -> list[object]:
    tables = ("job_states", "event_log", "result_snapshots", "ready", "scheduled")
    return [sql.execute(f"select * from duly.{table} order by 1, 2, 3").fetchall() for table in tables]
