"""Run a scenario with or without a bug, and check it."""

from __future__ import annotations

from contextlib import nullcontext

from duly.testing import DatabaseCluster
from duly.testing.history import CheckResult, check
from tests.mutants.patches import Patch
from tests.mutants.scenarios import Scenario
from tests.mutants.stage import staged


async def play(cluster: DatabaseCluster, scenario: Scenario, patch: Patch | None = None) -> CheckResult:
    """Run it on a fresh database, and check the recorded history."""
    async with staged(cluster) as stage:
        with patch(stage) if patch else nullcontext():
            await scenario(stage)
        return check(stage.history())
