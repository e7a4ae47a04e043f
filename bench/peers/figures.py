"""Figures of a system over its rounds, and Duly's compared with them round by round."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from bench.figures.numbers import Interval, median_interval
from bench.peers.catalogue import OURS


def by_round(results: dict[str, Any], key: str, name: str) -> dict[int, float | str]:
    """Return what was found, by the number of the round."""
    rounds = results["systems"].get(key, {"rounds": []})["rounds"]
    return {number: found[name] for number, found in enumerate(rounds) if name in found}


def numbers(results: dict[str, Any], key: str, name: str) -> dict[int, float]:
    """Return the numbers among them."""
    found = by_round(results, key, name)
    return {number: float(value) for number, value in found.items() if not isinstance(value, str)}


def figure(results: dict[str, Any], key: str, name: str) -> float | str | None:
    """Return the median of the rounds; a text if there is no number; None if it was not measured."""
    if measured := numbers(results, key, name):
        return statistics.median(measured.values())
    return next((str(text) for text in by_round(results, key, name).values()), None)


def number(results: dict[str, Any], key: str, name: str) -> float | None:
    """Return `figure` if it is a number."""
    found = figure(results, key, name)
    return found if isinstance(found, float) else None


def interval(results: dict[str, Any], key: str, name: str) -> Interval | None:
    """Return the interval of the median; None if the rounds are too few."""
    return median_interval(list(numbers(results, key, name).values()))


def ratios(results: dict[str, Any], key: str, name: str) -> list[float]:
    """Return Duly's figure over this system's, for every round that has both."""
    ours, theirs = numbers(results, OURS, name), numbers(results, key, name)
    return [ours[number] / value for number, value in theirs.items() if number in ours and value]


def ratio(results: dict[str, Any], key: str, name: str) -> float | None:
    """Return the median of `ratios`."""
    found = ratios(results, key, name)
    return statistics.median(found) if found else None


def ratio_interval(results: dict[str, Any], key: str, name: str) -> Interval | None:
    """Return its interval; None if the rounds are too few."""
    return median_interval(ratios(results, key, name))


def is_settled(results: dict[str, Any], key: str, names: tuple[str, ...], within: float) -> bool:
    """Whether more rounds are of no use: every ratio is known to a share of `within`, or never measured."""
    for name in names:
        if ratios(results, key, name):
            found = ratio_interval(results, key, name)
            if found is None or not found.is_within(within):
                return False
    return True


def busy_rounds(results: dict[str, Any], key: str, name: str) -> int:
    """Return in how many rounds other processes were busy while this was measured."""
    return sum(name in busy for busy in results["systems"].get(key, {}).get("busy", []))


def by_drain(results: dict[str, Any]) -> Iterator[str]:
    """Return the systems, the fastest drain first; those without a figure last."""

    def rank(key: str) -> float:
        return -(number(results, key, "drain_1") or 0.0)

    yield from sorted(results["systems"], key=rank)
