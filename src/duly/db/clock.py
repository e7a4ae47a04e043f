"""The clock of the database, without asking it each time."""

from __future__ import annotations

import time
from datetime import datetime, timedelta


class Clock:
    """The database's clock, extrapolated by the local monotonic clock: a wrong wall clock does no harm."""

    def __init__(self) -> None:
        self._at: datetime | None = None
        self._since = 0.0
        self._ahead = time.time() - time.monotonic()

    def set(self, now: datetime) -> None:
        """Set the clock to the time the database just returned."""
        self._at, self._since = now, time.monotonic()
        self._ahead = now.timestamp() - self._since

    def now(self) -> datetime:
        """Return the database's current time."""
        if self._at is None:
            raise RuntimeError("the clock is not set: peek at the lanes before reading it")
        return self._at + timedelta(seconds=time.monotonic() - self._since)

    def minute(self) -> int:
        """Return the database's current minute since the epoch; the local one until the clock is set."""
        return int((time.monotonic() + self._ahead) // 60)
