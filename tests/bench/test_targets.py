"""The checklist reports which targets were reached."""

from __future__ import annotations

from typing import Any

import pytest
from bench.figures.numbers import Interval
from bench.peers.targets import Verdict, judged, verdicts

from tests.bench.made import results


def one(words: str, found: list[Verdict]) -> Verdict:
    (verdict,) = [verdict for verdict in found if words in verdict.text]
    return verdict


def test_a_run_that_is_good_enough_reaches_every_target() -> None:
    assert [verdict.text for verdict in verdicts(results()) if verdict.word != "reached"] == []


@pytest.mark.parametrize(
    ("words", "system", "figure", "value"),
    [
        ("one process at least 1.5 x PgQueuer", "pgqueuer", "drain_1", 10_001),
        ("one process at least 1 x pg-boss", "pg_boss", "drain_1", 15_001),
        ("one process at least 1 x graphile", "graphile_worker", "drain_1", 15_001),
        ("two processes at least 1.3 x PgQueuer", "pgqueuer", "drain_2", 16_924),
        ("two processes at least 1 x graphile", "graphile_worker", "drain_2", 22_001),
        ("every other queue in Python", "rq_redis", "drain_1", 3_001),
        ("bulk enqueue at least 0.8 x graphile", "graphile_worker", "bulk", 25_001),
        ("20 at once, at least 2 x PgQueuer", "pgqueuer", "single_20", 1_251),
        ("one by one, at least 1 x PgQueuer", "pgqueuer", "single_1", 1_501),
        ("p50 at most 1.3 x taskiq-pg", "taskiq_pg", "p50_ms", 1.53),
        ("p50 at most 1 x PgQueuer", "pgqueuer", "p50_ms", 1.99),
        ("drain of 1,000,000", "duly", "backlog_1000000", 14_249),
        ("killed worker", "duly", "recovery_s", 7.1),
        ("killed worker", "duly", "recovery_s", "lost 3 of 100"),
    ],
)
def test_a_target_is_missed_just_below_its_threshold(
    words: str, system: str, figure: str, value: float | str
) -> None:
    found = verdicts(results(**{system: {figure: value}}))
    assert [verdict.text for verdict in found if verdict.word != "reached"] == [one(words, found).text]
    assert one(words, found).word == "not reached"


@pytest.mark.parametrize(
    ("low", "high", "at_least", "at_most"),
    [
        (1.1, 1.3, "reached", "not reached"),
        (0.7, 0.9, "not reached", "reached"),
        (0.9, 1.1, "open", "open"),
        (1.0, 1.2, "reached", "open"),
        (0.8, 1.0, "open", "reached"),
    ],
)
def test_an_interval_on_both_sides_leaves_a_target_open(
    low: float, high: float, at_least: str, at_most: str
) -> None:
    found = Interval(low, (low + high) / 2, high)
    assert (judged(found, 1.0), judged(found, 1.0, at_most=True)) == (at_least, at_most)


def drains(ours: list[int], theirs: list[int]) -> dict[str, Any]:
    """Return results with these drains of Duly and PgQueuer, round by round."""
    run = results()
    for key, values in (("duly", ours), ("pgqueuer", theirs)):
        run["systems"][key]["rounds"] = [{"drain_1": value} for value in values]
    return run


def test_a_good_median_does_not_reach_a_target_that_one_round_of_six_misses() -> None:
    run = drains([16_000, 16_000, 16_000, 16_000, 16_000, 11_000], [8_000] * 6)
    verdict = one("one process at least 1.5 x PgQueuer", verdicts(run))
    assert (verdict.word, verdict.ratio) == ("open", 2.0)
    assert verdict.interval == Interval(11 / 8, 2.0, 2.0)


def test_rounds_are_compared_with_each_other_so_that_a_slow_machine_is_slow_for_both() -> None:
    speeds = [1, 3, 2, 5, 4, 6]
    run = drains([2_000 * speed for speed in speeds], [1_000 * speed for speed in speeds])
    verdict = one("one process at least 1.5 x PgQueuer", verdicts(run))
    assert (verdict.word, verdict.interval) == ("reached", Interval(2.0, 2.0, 2.0))


def test_a_round_that_one_of_both_lacks_is_not_compared() -> None:
    run = drains([20_000] * 7, [10_000] * 7)
    run["systems"]["pgqueuer"]["rounds"][0] = {}
    run["systems"]["duly"]["rounds"][0] = {"drain_1": 1}
    assert one("one process at least 1.5 x PgQueuer", verdicts(run)).interval == Interval(2.0, 2.0, 2.0)


def test_too_few_rounds_leave_a_target_open() -> None:
    verdict = one("one process at least 1.5 x PgQueuer", verdicts(drains([30_000] * 5, [10_000] * 5)))
    assert (verdict.word, verdict.ratio, verdict.interval) == ("open", 3.0, None)
    assert verdict.remark == "too few rounds for an interval"


def test_the_nearest_of_the_other_python_queues_is_named() -> None:
    verdict = one("every other queue in Python", verdicts(results()))
    assert (verdict.ratio, verdict.remark) == (7.5, "nearest: Dramatiq; measured: 2 of 12")


def test_a_target_without_the_other_system_is_not_measured() -> None:
    run = results()
    run["systems"]["pg_boss"]["rounds"] = []
    assert one("pg-boss", verdicts(run)).word == "not measured"
