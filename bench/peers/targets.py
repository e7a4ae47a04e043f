"""Duly's targets compared with other systems, and whether a run reached them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bench.peers.catalogue import OURS, PYTHON, SYSTEMS
from bench.peers.figures import figure, number

FAST_PYTHON = "pgqueuer"
RECOVERS_WITHIN = 10.0
LARGE = 1_000_000
FLAT = 0.85


@dataclass(frozen=True)
class Verdict:
    """One line of the checklist; `ratio` is Duly's figure over the other one's, unless the text differs."""

    text: str
    reached: bool | None
    ratio: float | None = None
    remark: str = ""

    @property
    def word(self) -> str:
        """The verdict as text."""
        return "not measured" if self.reached is None else "reached" if self.reached else "not reached"


def verdicts(results: dict[str, Any]) -> list[Verdict]:
    """Return the whole checklist."""

    def at_least(factor: float, what: str, name: str, key: str) -> Verdict:
        return against(
            results, f"{what} at least {factor:g} x {title(key)}", name, key, lambda r: r >= factor
        )

    def at_most(what: str, name: str, key: str) -> Verdict:
        return against(results, f"{what} at most that of {title(key)}", name, key, lambda r: r <= 1)

    def title(key: str) -> str:
        return TITLES.get(key, key)

    return [
        at_least(1.5, "drain with one process", "drain_1", FAST_PYTHON),
        at_least(0.8, "drain with one process", "drain_1", "pg_boss"),
        at_least(0.8, "drain with one process", "drain_1", "graphile_worker"),
        at_least(1.3, "drain with two processes", "drain_2", FAST_PYTHON),
        at_least(0.9, "drain with two processes", "drain_2", "graphile_worker"),
        against_other_python(results, 5.0),
        at_least(1.0, "bulk enqueue", "bulk", FAST_PYTHON),
        at_least(2.0, "single enqueue, 20 at once,", "single_20", FAST_PYTHON),
        *(
            at_most(f"idle latency {part}", f"{part}_ms", key)
            for key in ("taskiq_pg", FAST_PYTHON)
            for part in ("p50", "p99")
        ),
        large_backlog(results),
        recovery(results),
    ]


TITLES = {
    "pgqueuer": "PgQueuer",
    "pg_boss": "pg-boss",
    "graphile_worker": "graphile-worker",
    "taskiq_pg": "taskiq-pg",
}


def against(
    results: dict[str, Any], text: str, name: str, key: str, holds: Callable[[float], bool]
) -> Verdict:
    """Compare one figure of Duly and of another system."""
    ours, theirs = number(results, OURS, name), number(results, key, name)
    if ours is None or not theirs:
        return Verdict(text, None)
    return Verdict(text, holds(ours / theirs), ours / theirs)


def against_other_python(results: dict[str, Any], factor: float) -> Verdict:
    """Compare with the fastest Python queue other than `FAST_PYTHON`."""
    text = f"drain with one process at least {factor:g} x every other queue in Python that was measured"
    ours = number(results, OURS, "drain_1")
    others = dict(other_python(results))
    if ours is None or not others:
        return Verdict(text, None)
    nearest = max(others, key=others.__getitem__)
    value = ours / others[nearest]
    all_of_them = sum(system.language == PYTHON for system in SYSTEMS) - len((OURS, FAST_PYTHON))
    remark = f"nearest: {nearest}; measured: {len(others)} of {all_of_them}"
    return Verdict(text, value >= factor, value, remark)


def other_python(results: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield title and drain rate of each measured one."""
    for key, entry in results["systems"].items():
        found = number(results, key, "drain_1")
        if entry["language"] == PYTHON and key not in (OURS, FAST_PYTHON) and found:
            yield entry["title"], found


def large_backlog(results: dict[str, Any]) -> Verdict:
    """A million jobs drain as fast as a few."""
    text = f"drain of {LARGE:,} at least {FLAT:g} x the drain of {results['jobs']:,}"
    few, many = number(results, OURS, "drain_1"), number(results, OURS, f"backlog_{LARGE}")
    if few is None or many is None:
        return Verdict(text, None)
    return Verdict(text, many / few >= FLAT, many / few)


def recovery(results: dict[str, Any]) -> Verdict:
    """Another worker soon restarts the jobs of a killed one."""
    text = f"jobs of a killed worker start again within {RECOVERS_WITHIN:.0f} s"
    found = figure(results, OURS, "recovery_s")
    if found is None:
        return Verdict(text, None)
    if isinstance(found, str):
        return Verdict(text, False, remark=found)
    return Verdict(text, found <= RECOVERS_WITHIN, remark=f"{found:.1f} s")
