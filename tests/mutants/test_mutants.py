"""Without a bug every promise holds; with each seeded bug the checker reports the broken promise."""

from __future__ import annotations

import pytest

from duly.testing import DatabaseCluster
from duly.testing.history import PROMISES
from tests.mutants.__main__ import tell
from tests.mutants.patches import in_database
from tests.mutants.registry import MUTANTS, Mutant
from tests.mutants.scenarios import SCENARIOS, crashes
from tests.mutants.trial import play


@pytest.mark.parametrize("name", SCENARIOS)
async def test_without_a_bug_every_promise_holds(cluster: DatabaseCluster, name: str) -> None:
    verdict = await play(cluster, SCENARIOS[name])
    assert verdict.holds, verdict.table()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
async def test_a_seeded_bug_is_caught(cluster: DatabaseCluster, mutant: Mutant) -> None:
    verdict = await play(cluster, mutant.scenario, mutant.patch)
    assert mutant.breaks in verdict.broken, verdict.table()


async def test_a_mutation_without_an_effect_is_not_reported(
    cluster: DatabaseCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    harmless = Mutant("nothing is wrong", "I8", crashes, in_database("select 1"))
    assert not await tell(cluster, harmless)
    assert "SURVIVED" in capsys.readouterr().out


def test_every_promise_has_a_mutant_and_every_mutant_a_scenario() -> None:
    assert {mutant.breaks for mutant in MUTANTS} == {promise.__name__.upper() for promise in PROMISES}
    assert {mutant.scenario for mutant in MUTANTS} == set(SCENARIOS.values())
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 12
