"""One real run in miniature, and how the harness handles systems that fail."""

from __future__ import annotations

import json
import os
import select
import sys
from pathlib import Path

import pytest
from bench.peers.bench import Sizes
from bench.peers.catalogue import OURS, chosen
from bench.peers.environments import reason
from bench.peers.measures import MEASURES
from bench.peers.measures.resources import CLIENT, SERVER, WAL
from bench.peers.processes import Hung, Program, stat
from bench.peers.report import COSTS, LATENCY, RATES, markdown
from bench.peers.runner import Plan, Run, keeper
from bench.peers.servers import POSTGRES_SETTINGS


def program(tmp_path: Path, code: str) -> Program:
    with (tmp_path / "log").open("ab") as log:
        return Program([sys.executable, "-c", code], tmp_path, dict(os.environ), log)


def test_a_silent_program_is_killed_with_its_whole_process_tree(tmp_path: Path) -> None:
    started = program(
        tmp_path,
        "import json, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n"
        "print(json.dumps({'child': child.pid}), flush=True)\n"
        "child.wait()",
    )
    child = started.answer(30)[1]["child"]
    with pytest.raises(Hung, match="no answer within 0 s"):
        started.answer(0.01)
    ending = os.pidfd_open(child)
    started.kill()
    assert not stat(started.pid)
    assert select.select([ending], [], [], 30)[0], "the child has ended"
    os.close(ending)


def test_a_failed_program_is_reported_with_its_last_line(tmp_path: Path) -> None:
    started = program(tmp_path, "import os\nraise SystemExit(f'no table in {os.getcwd()}/here')")
    with pytest.raises(Hung, match=r"ended with code 1: no table in here$"):
        started.answer(30)
    started.kill()


def test_an_unknown_system_is_refused_and_duly_is_always_measured() -> None:
    assert [system.key for system in chosen(["pgqueuer"], [])] == [OURS, "pgqueuer"]
    assert "celery_redis" not in [system.key for system in chosen([], ["celery_redis"])]
    with pytest.raises(SystemExit, match="no system nonsense"):
        chosen(["nonsense"], [])


def test_the_reason_of_a_failed_installation_is_its_error_line() -> None:
    output = "npm warn old\nnpm error code ETARGET\nnpm error notarget No matching version\nnpm error A log"
    assert reason(output) == "npm error notarget No matching version"


def test_a_small_run_gives_a_figure_for_every_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(POSTGRES_SETTINGS, "fsync", "off")
    file = tmp_path / "results.json"
    sizes = Sizes(jobs=200, step_limit=60, recovery_limit=0.5)
    plan = Plan(chosen([OURS], []), rounds=1, sizes=sizes, quiet_wait=0)
    results = Run(plan, tmp_path, keeper(file)).go()
    ours = results["systems"][OURS]
    assert (ours["failures"], ours["not_run"], len(ours["rounds"])) == ({}, None, 1)
    figures = ours["rounds"][0]
    assert {name: value for name in (*RATES, *COSTS) if (value := figures[name]) < 0} == {}
    assert min(figures[name] for name in (*RATES, "p50_ms", "memory_mb", "ready_s")) > 0
    assert min(figures[name + WAL] for name in (*RATES, *LATENCY)) > 0
    assert min(figures[name + cost] for name in (*RATES, *LATENCY) for cost in (CLIENT, SERVER)) >= 0
    assert (figures["ran_again"], figures["ran_again_2"], figures["victims"] > 0) == (0, 0, True)
    assert "recovery_s" in figures
    assert results["measures"] == list(MEASURES)
    assert json.loads(file.read_text()) == json.loads(json.dumps(results))
    assert f"Duly {ours['about']['version']}" in markdown(results)
