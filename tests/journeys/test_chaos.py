"""A minute of chaos: every kind of fault on a real cluster, and every promise holds."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.chaos.__main__ import SKIPPED
from tests.chaos.plan import KINDS, make_plan

SEED, MINUTES = 11, 1.0


@pytest.mark.timeout(600)
def test_every_promise_holds_under_every_fault() -> None:
    command = [sys.executable, "-m", "tests.chaos", "--seed", str(SEED), "--minutes", str(MINUTES)]
    done = subprocess.run(
        [*command, "--rate", "30"], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-2000:]}"
    assert re.search(r"^lost jobs +0$", done.stdout, re.M)
    assert re.search(r"^doubled effects +0$", done.stdout, re.M)
    assert "every promise holds, with evidence" in done.stdout


def test_the_short_run_has_every_kind_of_fault() -> None:
    assert {fault.kind for fault in make_plan(SEED, MINUTES * 60)} == set(KINDS)


def test_the_same_seed_gives_the_same_faults() -> None:
    assert make_plan(7, 600) == make_plan(7, 600) != make_plan(8, 600)


def test_faults_of_one_group_never_overlap() -> None:
    plan = make_plan(7, 600)
    for group in {fault.group for fault in plan}:
        ours = [fault for fault in plan if fault.group == group]
        assert all(one.at + one.seconds < other.at for one, other in pairwise(ours)), group
