"""The first thing a newcomer runs: no database named, nothing prepared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from duly.devdb import open_server

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def _run(home: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DULY_DATABASE")}
    environment = {**kept, "DULY_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, DEMO], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_demo_brings_its_own_database_and_finds_its_job_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first, second = _run(home), _run(home)
    assert "\nenqueued" in first
    assert "found by its idempotency key" in second
    for line in (
        "job ",
        "permalink ",
        "ended     completed, succeeded, attempt 1, 100 %",
        "result    {'east': 85092",
    ):
        found = next(seen for seen in first.splitlines() if seen.startswith(line))
        assert found in second.splitlines(), "the second run finds what the first one did"
    assert "1 job.queued" in first
    assert first.count("job.partial") == 4
    open_server(home).wait_until_stopped()
