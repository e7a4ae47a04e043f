"""How evenly the orgs were served, as one number: no label may name an org."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable, Iterable

_HALF = 30.0


def jain(shares: Iterable[int]) -> float:
    """Jain's index: 1 if all shares are equal, 1/n if one of n has everything; 1 of none."""
    given = [share for share in shares if share]
    squares = sum(share * share for share in given)
    return sum(given) ** 2 / (len(given) * squares) if squares else 1.0


class Fairness:
    """The claims of the last half minute to minute, by org."""

    def __init__(self) -> None:
        self._before: Counter[Hashable] = Counter()
        self._now: Counter[Hashable] = Counter()
        self._since = time.monotonic()

    def note(self, orgs: Iterable[Hashable]) -> None:
        """A job of each of these was claimed."""
        self._turn()
        self._now.update(orgs)

    def index(self) -> float:
        """How evenly they were served."""
        self._turn()
        return jain((self._before + self._now).values())

    def _turn(self) -> None:
        age = time.monotonic() - self._since
        if age >= _HALF:
            self._before = self._now if age < 2 * _HALF else Counter()
            self._now, self._since = Counter(), time.monotonic()
