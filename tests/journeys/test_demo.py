"""The first thing a newcomer runs: no database named, nothing prepared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg

from duly.devdb import open_server

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
