"""A process with a wrong clock: everything that asks Python for the time gets a shifted one."""

from __future__ import annotations

import datetime
import os
import time

SHIFT = "DULY_CHAOS_CLOCK"
_REAL = datetime.datetime


class _LooksLikeTheRealOne(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _REAL)


def shift_from_environment() -> None:
    """Shift the clock. Call it first: `from datetime import datetime` keeps what it imported."""
    seconds = float(os.environ.get(SHIFT, "0"))
    if not seconds:
        return
    delta, real_time, real_ns = datetime.timedelta(seconds=seconds), time.time, time.time_ns

    class Shifted(_REAL, metaclass=_LooksLikeTheRealOne):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> _REAL:
            return _REAL.now(tz) + delta

        @classmethod
        def utcnow(cls) -> _REAL:
            return _REAL.now(datetime.UTC).replace(tzinfo=None) + delta

    Shifted.__name__ = Shifted.__qualname__ = "datetime"
    Shifted.__module__ = "datetime"
    datetime.datetime = Shifted  # type: ignore[misc]
    time.time = lambda: real_time() + seconds
    time.time_ns = lambda: real_ns() + int(seconds * 1e9)
