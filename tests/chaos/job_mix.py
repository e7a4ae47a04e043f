"""Random job requests of clients, of every kind."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from duly.jobs.job import Call
from tests.chaos.app import app

_WEIGHTS = {
    "chaos.effect": 220,
    "chaos.effect_slow": 60,
    "chaos.effect_thread": 50,
    "chaos.effect_process": 5,
    "chaos.outside": 180,
    "chaos.thread": 50,
    "chaos.chunks": 50,
    "chaos.flaky": 80,
    "chaos.poison": 20,
    "chaos.invalid": 20,
    "chaos.blocked": 20,
    "chaos.snooze": 30,
    "chaos.long": 20,
    "chaos.delayed": 60,
    "chaos.exit": 4,
    "chaos.hang": 5,
    "chaos.hang_thread": 3,
    "chaos.block": 3,
    "chaos.leak": 2,
    "chaos.bridged": 50,
}


@dataclass(frozen=True, slots=True)
class Wish:
    """One job request as it is logged: enough to repeat it."""

    key: str
    job_type: str
    value: Any
    delay: float = 0.0

    def call(self) -> Call[Any]:
        """Return the request as a call. A delay counts from now: the first answer decides."""
        options: dict[str, Any] = {"idempotency_key": self.key}
        if self.delay:
            options["scheduled_for"] = datetime.now(UTC) + timedelta(seconds=self.delay)
        return app.registry.get(self.job_type).options(**options).call(self.value)


def draw(dice: random.Random, keys: Sequence[str]) -> list[Wish]:
    """Return one request for each key."""
    known = {name: weight for name, weight in _WEIGHTS.items() if name in app.registry}
    if len(keys) > 8 and dice.random() < 0.05:
        return [Wish(key, "chaos.hog", round(dice.uniform(0.5, 2), 2)) for key in keys]
    drawn = dice.choices(list(known), list(known.values()), k=len(keys))
    return [_wish(dice, key, job_type) for key, job_type in zip(keys, drawn, strict=True)]


def _wish(dice: random.Random, key: str, job_type: str) -> Wish:
    match job_type:
        case "chaos.chunks":
            return Wish(key, job_type, dice.randint(1, 12))
        case "chaos.long":
            return Wish(key, job_type, dice.randint(8, 24))
        case "chaos.block":
            return Wish(key, job_type, dice.choice([0.3, 1.2, 2.0]))
        case "chaos.delayed":
            # Some delays are longer than the longest fault, so that no fault excuses an early start.
            return Wish(key, job_type, 1, round(dice.choice([dice.uniform(0.5, 5), dice.uniform(12, 20)]), 2))
        case _:
            return Wish(key, job_type, dice.randrange(1000))
