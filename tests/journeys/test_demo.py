"""The first thing a newcomer runs: no database named, nothing prepared; then a town that lives."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
from world.asked import Asked
from world.checking import Checker
from world.people import ORGS

from duly import Actor, Duly, context
from duly.devdb import open_server
from duly.store.job_logs import REFUSED
from duly.testing import FreshDatabase
from tests.worker.working import working

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def _run(home: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DULY_DATABASE")}
    environment = {**kept, "DULY_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, DEMO, "--once"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_demo_brings_its_own_database_and_keeps_what_was_done(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first, second = _run(home), _run(home)
    for said in (first, second):
        assert "10 texts" in said
        assert "100 % completed" in said
        assert "ended     completed after 50 partial results" in said
        assert "alike     richtlinie-homeoffice-v1.md and richtlinie-homeoffice-v2.md" in said
    assert _permalink(first) != _permalink(second)
    server = open_server(home)
    with psycopg.connect(server.dsn("duly")) as sql:
        kept = {
            str(row[0]) for row in sql.execute("select result_id from duly.jobs where status = 'completed'")
        }
    assert {_permalink(first), _permalink(second)} <= kept
    server.wait_until_stopped()


def _permalink(said: str) -> str:
    line = next(line for line in said.splitlines() if line.startswith("permalink "))
    return line.rpartition("/")[2]


@contextmanager
def _on_a_terminal(environment: dict[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], Iterator[str]]]:
    """The demo as somebody runs it who looks on, and what it says."""
    ours, its = pty.openpty()
    with subprocess.Popen([sys.executable, DEMO], env=environment, stdout=its, stderr=its) as demo:
        os.close(its)
        with os.fdopen(ours, "rb") as screen:
            try:
                yield demo, (line.decode().strip() for line in screen)
            finally:
                demo.kill()


def _told(lines: Iterator[str], word: str) -> str:
    """What it says behind a word."""
    return next(line.removeprefix(word).strip() for line in lines if line.startswith(f"{word} "))


async def test_a_frozen_worker_is_taken_over_and_refused_and_nothing_outlives_the_demo(
    app: Duly, fresh: FreshDatabase, tmp_path: Path
) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DULY_")}
    named = {
        "DULY_DATABASE_URL": fresh.direct_url,
        "DULY_HOME": str(tmp_path),
        "DULY_BLOBS_URL": str(tmp_path),
    }
    with _on_a_terminal({**kept, **named}) as (demo, lines), httpx.Client(timeout=30) as operator:
        operator.base_url = _told(lines, "service")
        key = _told(lines, "Console").partition("#key=")[2]
        pids = [int(pid) for pid in re.findall(r"worker-\d (\d+)", _told(lines, "Workers"))]
        assert len(pids) >= 2
        csrf = operator.post("/session", json={"credential": key}).json()["csrf_token"]

        def freeze() -> httpx.Response:
            return operator.post("/console/demo/strike", data={"csrf": csrf, "how": "freeze"})

        job, org = re.search(r"/console/jobs/(.+)\?org=(.+)", freeze().headers["location"]).groups()
        page = next(told for told in _pages(operator) if "UTC" in told and "…" not in told)
        assert re.search(r"frozen .* after \S+ s after \S+ s by worker-\d after \S+ s after \S+ s", page)
        assert "broken" not in page
        story = await app.jobs.show(org, job)
        events = [(event.event_type, event.attempt) for event in story.events]
        lost = events.index(("job.lease_lost", 1))
        assert events[lost + 1] == ("job.started", 2)
        assert all(attempt == 2 for _, attempt in events[lost + 1 :])
        assert (await app.jobs.logs(org, job, attempt=1)).lines[-1].line_seq == REFUSED

        assert freeze().status_code == 303
        demo.send_signal(signal.SIGKILL)
        demo.wait()
        while any(map(_lives, pids)):
            threading.Event().wait(0.05)


def _pages(operator: httpx.Client) -> Iterator[str]:
    """What the page of the demo says, whenever that changes."""
    live = {"accept": "text/event-stream"}
    with operator.stream("GET", "/console/demo", headers=live) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                yield " ".join(re.sub(r"<[^>]+>", " ", json.loads(line.removeprefix("data: "))).split())


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_broken_promise_is_seen(app: Duly, sql: psycopg.Connection[Any]) -> None:
    sql.execute("create schema shop; create table shop.bookings (org_id uuid, job_id uuid, attempt integer)")
    org, checker = ORGS[0].org_id, Checker(app, Asked())
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
        await checker.look(sql)
        assert {checker.standings[name].verdict for name in ("I2", "I3", "I6", "I12", "I15", "I19")} == {
            "held"
        }
        assert checker.standings["I7"].verdict == "unseen"
        sql.execute("update duly.job_states set updated_at = now()")
        await enqueue(2)
        sql.execute("delete from duly.event_log where event_type = 'job.started'")
        await checker.look(sql)
    broken = {name for name, standing in checker.standings.items() if standing.verdict == "broken"}
    assert {"I3", "I19"} <= broken
    assert "I12" not in broken
