"""What may stand in a label: few names, known beforehand or capped, and never an org or an id."""

from __future__ import annotations

from collections.abc import Iterable

OTHER = "other"
"""Stands for every name beyond the cap."""
NONE = "none"
"""Stands for no name: an empty label is one that is not there."""


class Names:
    """The first so many names of a kind; whatever comes later is `other`, so that no caller makes series."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def __call__(self, name: str) -> str:
        """The name as it is shown."""
        if name in self._known:
            return name
        if not name:
            return NONE
        if len(self._known) >= self._most:
            return OTHER
        self._known.add(name)
        return name


class Fixed:
    """Names that are known beforehand; any other is `other`."""

    def __init__(self, names: Iterable[str]) -> None:
        self._known = frozenset(names)

    def __call__(self, name: str) -> str:
        """The name as it is shown."""
        return name if name in self._known else OTHER
