"""PostgreSQL is killed under load, twice. `duly worker` recovers by itself; every effect happens once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import psycopg

from duly import Actor, Handle, JobSnapshot, Status, context, errors
from duly.db.migrate import migrate
from duly.embedded import open_server
from tests.journeys.test_killed_transactions import TABLE
from tests.journeys.worker_process import make_app

JOBS = 1500


async def test_the_worker_survives_a_killed_database(tmp_path: Path) -> None:
    server = open_server(tmp_path / "pg")
    url = server.dsn()
    migrate(url)
    with psycopg.connect(url, autocommit=True) as sql:
        sql.execute(TABLE)
    app = make_app(url, url, str(tmp_path / "blobs"))
    org = uuid.uuid4()
    await app.create_org(org, "Acme")
    effect = app.registry.get("step.effect")
    with context(org_id=org, actor=Actor.user("u1")):
        handles = await app.enqueue_many([effect.call(n) for n in range(JOBS)])
    service = _service(url, tmp_path)
    try:
        for part in (1, 2):
            while await asyncio.to_thread(_effects, url) < part * JOBS // 4:
                continue
            _kill_postmaster(tmp_path / "pg")
        ended = [await _wait_through_outage(handle) for handle in handles]
    finally:
        service.send_signal(signal.SIGTERM)
        output, _ = await asyncio.to_thread(service.communicate)
    assert service.returncode == 0
    assert output.count("ready") == 1, "it was not restarted"
    assert {job.status for job in ended} == {Status.COMPLETED}
    with psycopg.connect(url, autocommit=True) as sql:
        once = sql.execute("select count(*), count(distinct job_id) from public.effects").fetchone()
        assert once == (JOBS, JOBS)
        assert sql.execute("select count(*) from duly.claims").fetchone() == (0,)
    await app.close()
    server.wait_until_stopped()


def _service(url: str, tmp_path: Path) -> subprocess.Popen[str]:
    settings = {"DULY_DATABASE_URL": url, "DULY_BLOBS_URL": str(tmp_path / "blobs")}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DULY_")}
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "duly.cli",
            "worker",
            "--app",
            "tests.journeys.restart_app:app",
            "--slots",
            "20",
        ],
        env={**inherited, **settings},
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )


def _effects(url: str) -> int:
    """Return the number of effects; 0 while the database is down."""
    try:
        with psycopg.connect(url, autocommit=True) as sql:
            row = sql.execute("select count(*) from public.effects").fetchone()
    except psycopg.OperationalError:
        return 0
    return row[0] if row else 0


def _kill_postmaster(home: Path) -> None:
    [pid_file] = home.glob("**/postmaster.pid")
    os.kill(int(pid_file.read_text().splitlines()[0]), signal.SIGKILL)


async def _wait_through_outage(handle: Handle[object]) -> JobSnapshot:
    """Wait for the end of a job, retrying while the database is down."""
    while True:
        try:
            return await handle.wait(timeout=60)
        except (errors.StoreError, psycopg.OperationalError):
            continue
