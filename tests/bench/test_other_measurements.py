"""Minimal runs of the other benchmarks: they run and report figures; the values do not matter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCH = Path(__file__).parents[2] / "bench"


def run_benchmark(name: str, tmp_path: Path, *arguments: str) -> Any:
    """Run a benchmark and return its figures."""
    figures = tmp_path / "figures.json"
    command = [sys.executable, BENCH / name, *arguments, "--json", figures]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert figures.exists(), done.stdout + done.stderr
    return json.loads(figures.read_text(encoding="utf-8"))


def test_growth_has_a_figure_for_every_size(tmp_path: Path) -> None:
    found = run_benchmark("growth", tmp_path, "--sizes", "small", "--axis", "backlog", "--repetitions", "3")
    points = found["axes"][0]["points"]
    assert [point["size"] for point in points] == [1_000, 3_000]
    for point in points:
        assert 0 < point["claim_ms"]["p50"] <= point["claim_ms"]["p99"]
        assert 0 < point["finish_ms"]["p50"] <= point["finish_ms"]["p99"]


def test_growth_has_the_cost_of_every_step_for_every_history(tmp_path: Path) -> None:
    found = run_benchmark("growth", tmp_path, "--sizes", "small", "--axis", "costs", "--out", str(tmp_path))
    points = found["costs"]
    assert [(point["history"], point["waiting"]) for point in points] == [
        (1_000, 1_000),
        (3_000, 1_000),
        (1_000, 3_000),
    ]
    for point in points:
        assert {"enqueue, one", "status poll", "list page of 50", "feed page of 100"} < point["steps"].keys()
        assert all(cost["server"] > 0 and cost["images"] <= cost["wal"] for cost in point["steps"].values())
    page = (tmp_path / "growth-costs.md").read_text(encoding="utf-8")
    assert "| ended + waiting | 1k + 1k | 3k + 1k | 1k + 3k |" in page


def test_an_upgrade_is_timed_and_so_are_the_calls_of_its_clients(tmp_path: Path) -> None:
    found = run_benchmark("upgrade", tmp_path, "--jobs", "500")
    assert found.keys() == {"upgrade", "keys"}
    for part in found.values():
        assert part["seconds"] > 0
        assert 0 < part["enqueue"]["median_ms"] <= part["enqueue"]["longest_ms"]


def test_the_cost_of_logs_metrics_and_events_is_measured_in_one_run(tmp_path: Path) -> None:
    found = run_benchmark("observe", tmp_path, "--jobs", "200", "--rounds", "1", "--warm-ups", "0")
    assert found["rates"].keys() == {"bare", "events", "all", "talking"}
    assert all(rate > 0 for rates in found["rates"].values() for rate in rates)
    cost = found["overhead"]["logs, metrics and events"]["middle"]
    assert cost == 1 - found["rates"]["all"][0] / found["rates"]["bare"][0]


def test_every_page_of_the_console_is_timed_and_its_tabs_are_counted(tmp_path: Path) -> None:
    small = ("--jobs", "400", "--times", "2", "--tabs", "2", "--seconds", "1")
    found = run_benchmark("console", tmp_path, *small)
    assert {"/", "/jobs", "/jobs/{job_id}", "/dead", "/audit"} <= {page["name"] for page in found["pages"]}
    assert all(0 < page["p50"] <= page["p95"] for page in found["pages"])
    assert [tabs["what"] for tabs in found["tabs"]] == ["all on the overview", "each on another page"]


def test_a_sustained_run_counts_the_jobs_that_it_did(tmp_path: Path) -> None:
    found = run_benchmark("sustained", tmp_path, "--minutes", "0.05", "--every", "1")
    assert found["samples"][-1]["finished"] > 0
