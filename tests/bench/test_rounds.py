"""Which systems have another round of a measure, and in which order."""

from __future__ import annotations

from pathlib import Path

from bench.peers.catalogue import OURS, chosen
from bench.peers.runner import Plan, Run

KEYS = ["pgqueuer", "pg_boss"]


def run_after(tmp_path: Path, **drains: list[float]) -> Run:
    """Return a run in which these rounds of the drain are done."""
    plan = Plan(chosen(KEYS, []), rounds=6, rounds_max=20, within=0.1)
    run = Run(plan, tmp_path, lambda _: None)
    for key, values in drains.items():
        found = [{"drain_1": value, "bulk": 1_000.0} for value in values]
        run.results["systems"][key]["rounds"] = found
    return run


def due(run: Run, name: str, number: int) -> list[str]:
    return [system.key for system in run.due(name, number)]


def test_every_round_begins_with_the_next_system(tmp_path: Path) -> None:
    run = run_after(tmp_path)
    assert [due(run, "drain", number) for number in range(4)] == [
        [OURS, "pgqueuer", "pg_boss"],
        ["pgqueuer", "pg_boss", OURS],
        ["pg_boss", OURS, "pgqueuer"],
        [OURS, "pgqueuer", "pg_boss"],
    ]


def test_only_systems_with_a_wide_interval_have_another_round_and_duly_with_them(tmp_path: Path) -> None:
    noisy: list[float] = [50, 52, 40, 60, 50, 51]
    run = run_after(tmp_path, duly=[100.0] * 6, pgqueuer=[50.0] * 6, pg_boss=noisy)
    assert sorted(due(run, "drain", 6)) == [OURS, "pg_boss"]


def test_the_rounds_end_when_all_intervals_are_narrow(tmp_path: Path) -> None:
    near: list[float] = [50, 52, 48, 51, 49, 50]
    run = run_after(tmp_path, duly=[100.0] * 6, pgqueuer=near, pg_boss=[20.0] * 6)
    assert due(run, "drain", 6) == []
    assert due(run, "drain", 5) != []


def test_a_system_without_any_figure_is_not_tried_for_ever(tmp_path: Path) -> None:
    assert due(run_after(tmp_path, duly=[100.0] * 6), "drain", 6) == []


def test_the_time_until_recovery_is_measured_once(tmp_path: Path) -> None:
    run = run_after(tmp_path)
    assert [len(due(run, "recovery", number)) for number in (0, 1)] == [3, 0]
