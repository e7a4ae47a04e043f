"""Decide whether tables and latencies stay flat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from figures.numbers import drift, pick

from sustained.watch import GROWING, HOT

SETTLING = 120.0
"""Seconds of warm-up, while tables grow to their working size."""
_FEWEST = 6
_SMALL_BYTES, _SMALL_DEAD = 2**20, 5_000
"""Below this a table counts as small, whatever its drift."""


class Finding(NamedTuple):
    """A figure that should not grow: its drift relative to its mean, and the allowed drift."""

    name: str
    mean: float
    drift: float
    allowed: float
    small: float = 0.0

    @property
    def flat(self) -> bool:
        """Whether it did not grow."""
        return self.mean <= self.small or self.drift <= self.allowed


def judge(samples: Sequence[dict[str, Any]], settling: float = SETTLING) -> list[Finding]:
    """Return the findings after the warm-up; nothing if there are too few samples."""
    steady = [sample for sample in samples if sample["seconds"] > settling]
    if len(steady) < _FEWEST:
        return []

    def found(name: str, allowed: float, *path: str, small: float = 0.0) -> Finding:
        line = [(sample["seconds"], pick(sample, *path)) for sample in steady]
        return Finding(name, sum(y for _, y in line) / len(line), drift(line), allowed, small)

    sizes = (found(f"{t}, bytes", 0.2, "tables", t, "bytes", small=_SMALL_BYTES) for t in HOT)
    dead = (found(f"{t}, dead rows", 0.5, "tables", t, "dead", small=_SMALL_DEAD) for t in HOT)
    grown = (found(f"{t}, bytes per job", 0.1, "bytes_a_job", t) for t in GROWING)
    claims = (
        found(f"claim {name}, ms", allowed, "claim_ms", name)
        for name, allowed in (("p50", 0.25), ("p99", 0.5))
    )
    return [*sizes, *dead, *grown, *claims]
