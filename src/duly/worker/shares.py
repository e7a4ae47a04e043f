"""How free slots are shared between lanes: by weight, with a memory, so that none starves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import floor

from duly.model.policy import CRITICAL
from duly.store.claims import Lane


class Shares:
    """Each lane gets the whole slots that its weight says; the rest goes to whom most is owed."""

    def __init__(self) -> None:
        self._owed: dict[str, float] = {}

    def divide(self, slots: int, lanes: Sequence[Lane]) -> list[tuple[Lane, int]]:
        """Who may take how many, what is critical first, then the weightiest; together exactly `slots`."""
        if not lanes:
            return []
        ordered = sorted(lanes, key=lambda lane: (lane.queue != CRITICAL, -lane.weight, lane.name))
        siblings = Counter(lane.queue for lane in ordered)
        weights = {lane.name: Fraction(lane.weight, siblings[lane.queue]) for lane in ordered}
        total = sum(weights.values())
        due = {name: slots * weight / total for name, weight in weights.items()}
        shares = {name: floor(whole) for name, whole in due.items()}
        # What is owed to a lane that has nothing to do is forgotten: nobody saves up while idle.
        owed = {name: self._owed.get(name, 0.0) + float(due[name] - shares[name]) for name in due}
        for _ in range(slots - sum(shares.values())):
            first = max(owed, key=owed.__getitem__)
            shares[first] += 1
            owed[first] -= 1
        # Lanes that left took their debts along; the bound keeps those that stay within reach of new ones.
        self._owed = {name: min(part, len(owed)) for name, part in owed.items()}
        return [(lane, shares[lane.name]) for lane in ordered if shares[lane.name] > 0]
