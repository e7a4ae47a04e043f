"""Which faults come when: all of it from the seed, before anything starts."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

WORKERS, CLIENTS = 2, 3
FIRST_FAULT = 4.0
"""Seconds of peace at the beginning."""

# What a fault is done to: two faults of one room never overlap, faults of different rooms do.
ROOMS = {
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
KINDS = tuple(ROOMS)
AFTER_A_HOLE = ("resume", "cut", "stay")
"""What held back comes late, or is cut off, or leads nowhere for ever while new connections work."""
# How long the room needs before its next fault: what is killed has to come back first.
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
"""How long a fault lasts, from and to."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: when it starts, in seconds from the start of the load, and how long it lasts."""

    at: float
    kind: str
    seconds: float = 0.0
    victim: int = 0
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def room(self) -> str:
        return ROOMS[self.kind]

    def __str__(self) -> str:
        said = {"worker": f"w{self.victim}", "client": f"c{self.victim}"}.get(self.room, "")
        more = " ".join(f"{name}={value}" for name, value in self.details.items())
        lasts = f"for {self.seconds:.1f} s" if self.seconds else ""
        begins = f"{self.at:7.1f} s  {self.kind:<12}"
        return " ".join(part for part in (begins, said, lasts, more) if part).rstrip()


def make_plan(seed: int, seconds: float, kinds: Sequence[str] = KINDS) -> list[Fault]:
    """The faults of a run. Every kind comes once before any comes again, in an order that is drawn."""
    dice = random.Random(seed)
    plan: list[Fault] = []
    free = dict.fromkeys(ROOMS.values(), 0.0)
    at = FIRST_FAULT
    for kind in _rounds(dice, kinds):
        room = ROOMS[kind]
        fault = _draw(dice, kind, round(max(at, free[room]), 1))
        if fault.at + fault.seconds > seconds - 3:
            return sorted(plan, key=lambda fault: fault.at)
        plan.append(fault)
        lasts = fault.seconds + (_FAILOVER if kind == "failover" else _RECOVERY[room])
        free[room] = fault.at + lasts
        at += dice.uniform(1.0, 4.0)
    return plan


def _rounds(dice: random.Random, kinds: Sequence[str]) -> Iterator[str]:
    while kinds:
        deck = list(kinds)
        dice.shuffle(deck)
        yield from deck


def _draw(dice: random.Random, kind: str, at: float) -> Fault:
    # Drawn in the same order for every kind, so that a change of one leaves the others as they are.
    victim = dice.randrange(CLIENTS if ROOMS[kind] == "client" else WORKERS)
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
