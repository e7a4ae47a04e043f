"""The checklist reports which targets were reached."""

from __future__ import annotations

import pytest
from bench.peers.targets import Verdict, verdicts

from tests.bench.made import results


def one(words: str, found: list[Verdict]) -> Verdict:
    (verdict,) = [verdict for verdict in found if words in verdict.text]
    return verdict


def test_a_run_that_is_good_enough_reaches_every_target() -> None:
    assert [verdict.text for verdict in verdicts(results()) if not verdict.reached] == []


@pytest.mark.parametrize(
    ("words", "system", "figure", "value"),
    [
        ("one process at least 1.5 x PgQueuer", "pgqueuer", "drain_1", 10_001),
        ("one process at least 0.8 x pg-boss", "pg_boss", "drain_1", 18_751),
        ("one process at least 0.8 x graphile", "graphile_worker", "drain_1", 18_751),
        ("two processes at least 1.3 x PgQueuer", "pgqueuer", "drain_2", 16_924),
        ("two processes at least 0.9 x graphile", "graphile_worker", "drain_2", 24_445),
        ("every other queue in Python", "rq_redis", "drain_1", 3_001),
        ("bulk enqueue", "pgqueuer", "bulk", 20_001),
        ("20 at once", "pgqueuer", "single_20", 1_251),
        ("p50 at most that of taskiq-pg", "taskiq_pg", "p50_ms", 1.9),
        ("p99 at most that of PgQueuer", "pgqueuer", "p99_ms", 4.9),
        ("drain of 1,000,000", "duly", "backlog_1000000", 12_749),
        ("killed worker", "duly", "recovery_s", 10.1),
        ("killed worker", "duly", "recovery_s", "lost 3 of 100"),
    ],
)
def test_a_target_is_missed_just_below_its_threshold(
    words: str, system: str, figure: str, value: float | str
) -> None:
    found = verdicts(results(**{system: {figure: value}}))
    assert [verdict.text for verdict in found if not verdict.reached] == [one(words, found).text]
    assert one(words, found).word == "not reached"


def test_a_ratio_is_dulys_figure_over_the_other_one() -> None:
    assert one("one process at least 1.5 x PgQueuer", verdicts(results())).ratio == 15_000 / 8_000


def test_the_nearest_of_the_other_python_queues_is_named() -> None:
    verdict = one("every other queue in Python", verdicts(results()))
    assert (verdict.ratio, verdict.remark) == (7.5, "nearest: Dramatiq; measured: 2 of 11")


def test_a_target_without_the_other_system_is_not_measured() -> None:
    run = results()
    run["systems"]["pg_boss"]["rounds"] = []
    assert one("pg-boss", verdicts(run)).word == "not measured"
