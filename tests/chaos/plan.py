"""The plan of faults, derived from the seed before anything starts."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

WORKERS, CLIENTS = 2, 3
FIRST_FAULT = 4.0
"""Seconds without faults at the beginning."""

# The group of a fault: two faults of one group never overlap, faults of different groups do.
GROUPS = {
    "worker_kill": "worker",
    "worker_stop": "worker",
    "worker_drain": "worker",
    "worker_clock": "worker",
    "client_kill": "client",
    "cut": "network",
    "delay": "network",
    "hole": "network",
    "deaf": "network",
    "terminate": "backends",
    "crowd": "backends",
    "pg_kill": "database",
    "backend_kill": "database",
    "disk_full": "database",
    "failover": "database",
}
KINDS = tuple(GROUPS)
AFTER_A_HOLE = ("resume", "cut", "stay")
"""Delayed packets arrive late, or the connection is cut, or it stays dead while new connections work."""
# How long the group needs before its next fault: a killed victim has to recover first.
_RECOVERY = {"worker": 3.0, "client": 2.0, "network": 2.0, "backends": 1.0, "database": 6.0}
_FAILOVER = 16.0
_SECONDS = {
    "worker_stop": (3.5, 6.5),  # longer than the lease, which is three
    "worker_clock": (6.0, 10.0),
    "delay": (2.0, 6.0),
    "hole": (2.0, 7.0),
    "deaf": (0.5, 2.5),
    "crowd": (2.0, 5.0),
    "disk_full": (2.0, 5.0),
    "pg_kill": (0.0, 2.0),
}
"""Minimum and maximum duration of a fault."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: its start in seconds after the start of the load, and its duration."""

    at: float
    kind: str
    seconds: float = 0.0
    victim: int = 0
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def group(self) -> str:
        return GROUPS[self.kind]

    def __str__(self) -> str:
        victim = {"worker": f"w{self.victim}", "client": f"c{self.victim}"}.get(self.group, "")
        more = " ".join(f"{name}={value}" for name, value in self.details.items())
        lasts = f"for {self.seconds:.1f} s" if self.seconds else ""
        begins = f"{self.at:7.1f} s  {self.kind:<12}"
        return " ".join(part for part in (begins, victim, lasts, more) if part).rstrip()


def make_plan(seed: int, seconds: float, kinds: Sequence[str] = KINDS) -> list[Fault]:
    """Return the faults of a run. Every kind comes once before any comes again, in random order."""
    dice = random.Random(seed)
    plan: list[Fault] = []
    free = dict.fromkeys(GROUPS.values(), 0.0)
    at = FIRST_FAULT
    for kind in _rounds(dice, kinds):
        group = GROUPS[kind]
        fault = _draw(dice, kind, round(max(at, free[group]), 1))
        if fault.at + fault.seconds > seconds - 3:
            return sorted(plan, key=lambda fault: fault.at)
        plan.append(fault)
        lasts = fault.seconds + (_FAILOVER if kind == "failover" else _RECOVERY[group])
        free[group] = fault.at + lasts
        at += dice.uniform(1.0, 4.0)
    return plan


def _rounds(dice: random.Random, kinds: Sequence[str]) -> Iterator[str]:
    while kinds:
        deck = list(kinds)
        dice.shuffle(deck)
        yield from deck


def _draw(dice: random.Random, kind: str, at: float) -> Fault:
    # Drawn in the same order for every kind, so that a change of one does not affect the others.
    victim = dice.randrange(CLIENTS if GROUPS[kind] == "client" else WORKERS)
    length, share = dice.random(), round(dice.uniform(0.2, 1), 2)
    hours, then = dice.choice([1, -1]), dice.choice(AFTER_A_HOLE)
    shortest, longest = _SECONDS.get(kind, (0.0, 0.0))
    details: dict[str, dict[str, Any]] = {
        "worker_clock": {"hours": hours},
        "cut": {"share": share},
        "terminate": {"share": share},
        "delay": {"delay": round(0.02 + 0.2 * share, 2)},
        "hole": {"share": share, "then": then},
        "deaf": {"share": share},
    }
    seconds = round(shortest + (longest - shortest) * length, 1)
    return Fault(at, kind, seconds, victim, details.get(kind, {}))
