"""From nothing to a job of one's own, by what the README says."""

from __future__ import annotations

from pathlib import Path

from duly import Client
from duly.testing import FreshDatabase
from tests.architecture.newcomer import first_program, first_steps


def test_a_newcomer_has_a_job_done_in_fifteen_lines(fresh: FreshDatabase, tmp_path: Path) -> None:
    assert len([line for line in first_program().splitlines() if line.strip()]) <= 15
    with first_steps(fresh, tmp_path) as ready, Client(ready["url"], ready["key"]) as client:
        job = client.submit("report.build", {"regions": ["DE", "FRA"]})
        seen: list[float] = []
        job.wait(timeout=30, on_progress=lambda status: seen.append(status.progress_percent))
        assert job.result() == {"DE": 4052, "FRA": 6078}
        assert [part.value for part in job.partials()] == [4052, 6078]
        assert seen[-1] == 100
