"""Duly's targets compared with other systems, and whether a run reached them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.figures.numbers import Interval, median_interval
from bench.peers.catalogue import OURS, PYTHON, SYSTEMS
from bench.peers.figures import figure, numbers, ratio, ratio_interval

FAST_PYTHON = "pgqueuer"
RECOVERS_WITHIN = 7.0
LARGE = 1_000_000
FLAT = 0.95
REACHED, MISSED, OPEN, NOT_MEASURED = "reached", "not reached", "open", "not measured"


@dataclass(frozen=True)
class Target:
    """Duly's figure is at least, or at most, this multiple of another system's."""

    what: str
    name: str
    key: str
    factor: float
    at_most: bool = False

    @property
    def text(self) -> str:
        """The line of the checklist."""
        word = "at most" if self.at_most else "at least"
        return f"{self.what} {word} {self.factor:g} x {TITLES[self.key]}"


TITLES = {system.key: system.title for system in SYSTEMS}
TARGETS = (
    Target("drain with one process", "drain_1", FAST_PYTHON, 1.5),
    Target("drain with one process", "drain_1", "pg_boss", 1.0),
    Target("drain with one process", "drain_1", "graphile_worker", 1.0),
    Target("drain with two processes", "drain_2", FAST_PYTHON, 1.3),
    Target("drain with two processes", "drain_2", "graphile_worker", 1.0),
    Target("bulk enqueue", "bulk", "graphile_worker", 0.8),
    Target("single enqueue, 20 at once,", "single_20", FAST_PYTHON, 2.0),
    Target("single enqueue, one by one,", "single_1", FAST_PYTHON, 1.0),
    Target("idle latency p50", "p50_ms", FAST_PYTHON, 1.0, at_most=True),
    Target("idle latency p50", "p50_ms", "taskiq_pg", 1.3, at_most=True),
)


@dataclass(frozen=True)
class Verdict:
    """One line of the checklist; `ratio` is Duly's figure over the other one's, unless the text differs."""

    text: str
    word: str
    ratio: float | None = None
    interval: Interval | None = None
    remark: str = ""


def judged(found: Interval | None, factor: float, *, at_most: bool = False) -> str:
    """Return the verdict: an interval that contains the factor decides nothing, and neither does none."""
    if found is None:
        return OPEN
    reached = found.high <= factor if at_most else found.low >= factor
    missed = found.low > factor if at_most else found.high < factor
    return REACHED if reached else MISSED if missed else OPEN


def verdicts(results: dict[str, Any]) -> list[Verdict]:
    """Return the whole checklist."""
    return [
        *(against(results, target) for target in TARGETS),
        against_other_python(results, 5.0),
        large_backlog(results),
        recovery(results),
    ]


def against(results: dict[str, Any], target: Target) -> Verdict:
    """Compare one figure of Duly and of another system, round by round."""
    value = ratio(results, target.key, target.name)
    if value is None:
        return Verdict(target.text, NOT_MEASURED)
    found = ratio_interval(results, target.key, target.name)
    remark = "" if found else "too few rounds for an interval"
    return Verdict(target.text, judged(found, target.factor, at_most=target.at_most), value, found, remark)


def against_other_python(results: dict[str, Any], factor: float) -> Verdict:
    """Compare with the fastest Python queue other than `FAST_PYTHON`."""
    text = f"drain with one process at least {factor:g} x every other queue in Python that was measured"
    others = dict(other_python(results))
    if not others:
        return Verdict(text, NOT_MEASURED)
    nearest = min(others, key=others.__getitem__)
    comparable = [system for system in SYSTEMS if system.language == PYTHON and not system.no_adapter]
    remark = (
        f"nearest: {TITLES[nearest]}; measured: {len(others)} of {len(comparable) - len((OURS, FAST_PYTHON))}"
    )
    found = ratio_interval(results, nearest, "drain_1")
    return Verdict(text, judged(found, factor), others[nearest], found, remark)


def other_python(results: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield key and ratio of each measured one."""
    for key, entry in results["systems"].items():
        value = ratio(results, key, "drain_1")
        if entry["language"] == PYTHON and key not in (OURS, FAST_PYTHON) and value:
            yield key, value


def large_backlog(results: dict[str, Any]) -> Verdict:
    """A million jobs drain as fast as a few, round by round."""
    text = f"drain of {LARGE:,} at least {FLAT:g} x the drain of {results['jobs']:,}"
    few, many = (numbers(results, OURS, name) for name in ("drain_1", f"backlog_{LARGE}"))
    found = [value / few[number] for number, value in many.items() if number in few]
    if not found:
        return Verdict(text, NOT_MEASURED)
    interval = median_interval(found)
    remark = "" if interval else "too few rounds for an interval"
    return Verdict(text, judged(interval, FLAT), statistics.median(found), interval, remark)


def recovery(results: dict[str, Any]) -> Verdict:
    """Another worker soon restarts the jobs of a killed one; measured once."""
    text = f"jobs of a killed worker start again within {RECOVERS_WITHIN:.0f} s"
    found = figure(results, OURS, "recovery_s")
    if found is None:
        return Verdict(text, NOT_MEASURED)
    if isinstance(found, str):
        return Verdict(text, MISSED, remark=found)
    return Verdict(text, REACHED if found <= RECOVERS_WITHIN else MISSED, remark=f"{found:.1f} s")
