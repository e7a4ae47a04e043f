"""Who is absent for long enough to be given up: found so in every look, for a while."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

_CERTAIN = 2.0
"""Seconds. When the database was restarted all are absent at first: whoever lives comes back meanwhile."""
_GAP = 5.0
"""Between looks that lie farther apart, anything may have happened."""


class Absences:
    """What one reaper remembers of its looks. Times are those of a monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._found: dict[UUID, tuple[float, datetime]] = {}
        self._looked_at = 0.0

    def confirmed(self, absent: Mapping[UUID, datetime], now: float) -> dict[UUID, datetime]:
        """Of those who are absent in this look, whoever was so long enough; and when that was first found."""
        before = self._found if now - self._looked_at <= _GAP else {}
        self._looked_at = now
        self._found = {who: before.get(who, (now, at)) for who, at in absent.items()}
        return {who: at for who, (since, at) in self._found.items() if now - since >= _CERTAIN}

    def forget(self) -> None:
        """Begin anew."""
        self._found = {}
