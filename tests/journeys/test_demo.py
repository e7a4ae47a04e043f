"""The demo without a configured database and without preparation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
from demo_app.customers import ORGS
from demo_app.promise_checker import Checker
from demo_app.submissions import SubmissionLog

from duly import Actor, Duly, context
from duly.embedded import open_server
from tests.db.open_transactions import wait_for_transactions
from tests.worker.working import working

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def _run(home: Path) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DULY_DATABASE")}
    environment = {**inherited, "DULY_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, DEMO, "--once"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_demo_starts_its_own_database_and_keeps_its_results(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first, second = _run(home), _run(home)
    for output in (first, second):
        assert "10 texts" in output
        assert "100 % completed" in output
        assert "ended     completed after 50 partial results" in output
        assert "alike     richtlinie-homeoffice-v1.md and richtlinie-homeoffice-v2.md" in output
    assert _permalink(first) != _permalink(second)
    server = open_server(home)
    with psycopg.connect(server.dsn("duly")) as sql:
        stored = {
            str(row[0]) for row in sql.execute("select result_id from duly.jobs where status = 'completed'")
        }
    assert {_permalink(first), _permalink(second)} <= stored
    server.wait_until_stopped()


def _permalink(output: str) -> str:
    line = next(line for line in output.splitlines() if line.startswith("permalink "))
    return line.rpartition("/")[2]


async def test_a_violated_promise_is_reported(app: Duly, sql: psycopg.Connection[Any]) -> None:
    sql.execute("create schema shop; create table shop.bookings (org_id uuid, job_id uuid, attempt integer)")
    org, checker = ORGS[0].org_id, Checker(app, SubmissionLog())
    for one in ORGS:
        await app.create_org(one.org_id, one.name)

    @app.job("demo.plain")
    async def plain(n: int) -> int:
        return n

    async def enqueue(n: int) -> None:
        with context(org_id=org, actor=Actor.user("anna")):
            handle = await plain.enqueue(n)
        await handle.wait(timeout=30)

    async with working(app):
        await enqueue(1)
        wait_for_transactions(sql)
        await checker.check_once(sql)
        assert {checker.states[name].verdict for name in ("I2", "I3", "I6", "I12", "I15", "I19")} == {"held"}
        assert checker.states["I7"].verdict == "unseen"
        sql.execute("update duly.job_ends set finished_at = now()")
        await enqueue(2)
        sql.execute(
            "insert into duly.event_log "
            "(org_id, job_id, event_seq, event_type, status, attempt, occurred_at, actor_type, actor_id) "
            "select org_id, job_id, 9, 'job.progressed', 'running', 1, finished_at, 'worker', 'w' "
            "from duly.job_ends"
        )
        wait_for_transactions(sql)
        await checker.check_once(sql)
    broken = {name for name, state in checker.states.items() if state.verdict == "broken"}
    assert {"I3", "I19"} <= broken
    assert "I12" not in broken
