"""The real SQL compared with the model over random sequences; and a check that differences are found."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from duly.db.statements import statement
from duly.testing import DatabaseCluster
from tests.protocol.machine import Protocol
from tests.protocol.stage import Stage


@pytest.fixture(scope="module")
def stage(cluster: DatabaseCluster) -> Iterator[Stage]:
    with cluster.fresh() as fresh:
        made = Stage(fresh)
        yield made
        made.close()


@pytest.fixture
def bounded(request: pytest.FixtureRequest) -> settings:
    """Use the same sequences every time, unless a seed is given."""
    return settings(
        max_examples=60,
        stateful_step_count=40,
        deadline=None,
        database=None,
        derandomize=request.config.getoption("--hypothesis-seed") is None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )


@pytest.mark.timeout(600)
def test_the_tables_always_match_the_model(stage: Stage, bounded: settings) -> None:
    run_state_machine_as_test(lambda: Protocol(stage), settings=bounded)


_FENCE = " and s.attempt = t.attempt"
_HELD = "\n      and s.status in ('running', 'partial')"
WRONG: dict[str, tuple[str, str, str, str, tuple[str, ...]]] = {
    "settle does not compare the attempt": ("settle_store", "jobs/settle", _FENCE, "", ("sleep", "end")),
    "settle does not look at the status": ("settle_store", "jobs/settle", _HELD, "", ("claim", "end")),
    "settle counts the events as decided": (
        *("settle_store", "jobs/settle"),
        "then 1 + ('job.lease_lost' = any (t.events))::integer else",
        "then cardinality(t.events) else",
        ("cancel", "end"),
    ),
    "a chunk does not compare the attempt": (
        *("settle_store", "jobs/store_chunk", " and s.attempt = %(attempt)s", ""),
        ("sleep", "chunk"),
    ),
    "progress does not compare the attempt": (
        "settle_store",
        "jobs/update_progress",
        _FENCE,
        "",
        ("sleep", "progress"),
    ),
    "the claim does not count the attempt": (
        *("claim", "jobs/claim", "attempt = s.attempt + 1", "attempt = s.attempt"),
        ("sleep", "claim"),
    ),
    "a job is failed for an earlier wait": (
        *("settle_store", "jobs/fail_waiting", "where coalesce(s.attempt, 0) = t.attempt", ""),
        ("enqueue", "look_away", "overrule"),
    ),
    "a lost worker may claim": (
        *("claim", "jobs/claim", "coalesce(w.lost_at, w.stopped_at) is not null", "false"),
        ("enqueue", "sleep", "claim"),
    ),
    "a lost worker's heart beats again": (
        *("workers_store", "workers/beat", " and lost_at is null", ""),
        ("sleep", "beat"),
    ),
}
"""A statement of a module, the change of its text, and the actions that suffice to detect it."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_statement_is_found(
    stage: Stage, bounded: settings, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    module, file, right, wrong, acts = WRONG[name]
    claims = {"jobs/claim_open", "jobs/claim_named"} if file == "jobs/claim" else set[str]()
    files = {file} | {each for each in claims if right in statement(each)}
    assert all(statement(each).count(right) == 1 for each in files)

    def patched(expected: str) -> str:
        text = statement(expected)
        return text.replace(right, wrong) if expected in files else text

    monkeypatch.setattr(f"duly.worker.{module}.statement", patched)
    quickly = settings(
        bounded, phases=[Phase.generate], derandomize=True, max_examples=300, stateful_step_count=15
    )
    with pytest.raises((AssertionError, psycopg.Error)):
        run_state_machine_as_test(lambda: Protocol(stage, acts), settings=quickly)
