"""A newcomer follows the README: the first job, then one with progress in the browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from duly import Client
from duly.testing import FreshDatabase
from tests.architecture.pages import ROOT
from tests.architecture.readme_program import first_program, first_steps


def test_the_first_program_prints_the_result_of_its_job_on_the_embedded_database(tmp_path: Path) -> None:
    program = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)[0]
    assert len([line for line in program.splitlines() if line.strip()]) <= 12
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DULY_")}
    environment = {**inherited, "DULY_HOME": str(tmp_path)}
    printed = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert printed == "Hello, Anna!\n"


def test_the_browser_program_of_the_readme_runs_and_has_at_most_fifteen_lines(
    fresh: FreshDatabase, tmp_path: Path
) -> None:
    assert len([line for line in first_program().splitlines() if line.strip()]) <= 15
    with first_steps(fresh, tmp_path) as ready, Client(ready["url"], ready["key"]) as client:
        job = client.submit("report.build", {"regions": ["DE", "FRA"]})
        progress: list[float] = []
        job.wait(timeout=30, on_progress=lambda status: progress.append(status.progress_percent))
        assert job.result() == {"DE": 4052, "FRA": 6078}
        assert [part.value for part in job.partials()] == [4052, 6078]
        assert progress[-1] == 100
