"""Figures of a system over its rounds."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from bench.peers.catalogue import OURS


def figure(results: dict[str, Any], key: str, name: str) -> float | str | None:
    """Return the median of the rounds; a text if there is no number; None if it was not measured."""
    entry = results["systems"].get(key)
    found = [round_[name] for round_ in entry["rounds"] if name in round_] if entry else []
    numbers = [float(value) for value in found if not isinstance(value, str)]
    if numbers:
        return statistics.median(numbers)
    return str(found[0]) if found else None


def number(results: dict[str, Any], key: str, name: str) -> float | None:
    """Return `figure` if it is a number."""
    found = figure(results, key, name)
    return found if isinstance(found, float) else None


def ratio(results: dict[str, Any], key: str, name: str) -> float | None:
    """Return this system's figure as a multiple of Duly's."""
    theirs, ours = number(results, key, name), number(results, OURS, name)
    return theirs / ours if theirs is not None and ours else None


def by_drain(results: dict[str, Any]) -> Iterator[str]:
    """Return the systems, the fastest drain first; those without a figure last."""

    def rank(key: str) -> float:
        return -(number(results, key, "drain_1") or 0.0)

    yield from sorted(results["systems"], key=rank)
