"""Cron expressions in time zones: when a schedule ticks. Pure: the time is an argument, never a clock.

An expression has five fields, or six with the seconds first. Cronsim computes the calendar; this module adds
the time zone, because cronsim handles the days on which clocks change differently:

- A fixed time (neither minute nor hour starts with `*`) ticks once a day: in the spring gap at the first
  instant after the gap, in the autumn fold at the first of the two.
- Anything else follows the wall clock: no tick in the gap, and those of the fold's hour twice.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice, takewhile
from typing import Any, Self
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from duly.core.errors import ContractError

_SECOND, _DAY = timedelta(seconds=1), timedelta(days=1)
_MAX_EXPRESSION_LENGTH = 200
# Files next to the zones: the machine's own zone, and copies that count leap seconds.
_NOT_ZONES = ("localtime", "posix", "right/")
_FIELDS_FIX = "use five fields (minute hour day month weekday), or six with the seconds first"
_ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Missed(StrEnum):
    """The policy for ticks that were due while no scheduler ran."""

    SKIP = "skip"
    """Run ticks that are late by at most a tolerance; record the others as missed."""
    ONCE = "once"
    """Run the latest; record the others as missed."""
    ALL = "all"
    """Run every tick, however late."""

    def to_run(
        self, due: Sequence[datetime], *, more: bool, now: datetime, tolerance: timedelta
    ) -> Sequence[datetime]:
        """Return those of these due ticks that run; `more` means that later ones are due as well."""
        match self:
            case Missed.ALL:
                return due
            case Missed.SKIP:
                return [at for at in due if now - at <= tolerance]
            case Missed.ONCE:
                return [] if more else due[-1:]


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression in a time zone."""

    expression: str
    zone: ZoneInfo

    @classmethod
    def parse(cls, expression: str, timezone: str = "UTC") -> Self:
        """Parse an expression and the name of a zone; raise for the invalid one."""
        expression = _expanded(expression)
        _sim(expression, datetime(2000, 1, 1))
        return cls(expression, _zone(timezone))

    @property
    def fixed(self) -> bool:
        """Whether the expression has fixed times of the day, rather than an interval."""
        minute, hour = self.expression.split()[-5:-3]
        return not minute.startswith("*") and not hour.startswith("*")

    def after(self, start: datetime) -> datetime | None:
        """Return the first tick after an instant; None if there is none within fifty years."""
        return next(self.ticks(start), None)

    def due(self, after: datetime, now: datetime, limit: int) -> list[datetime]:
        """Return up to `limit` ticks after an instant and up to now."""
        return list(islice(takewhile(lambda at: at <= now, self.ticks(after)), limit))

    def ticks(self, after: datetime) -> Iterator[datetime]:
        """Yield the ticks after an instant, in UTC, strictly increasing."""
        start = after.astimezone(UTC).replace(microsecond=0)
        return self._fixed_ticks(start) if self.fixed else self._interval_ticks(start)

    def _fixed_ticks(self, last: datetime) -> Iterator[datetime]:
        for wall in _sim(self.expression, last.astimezone(self.zone).replace(tzinfo=None)):
            at = self._instant(wall)
            # Several times may fall into one gap, and the second hour of a fold looks like the first.
            if at > last:
                yield (last := at)

    def _interval_ticks(self, last: datetime) -> Iterator[datetime]:
        offset = self._offset(last)
        while (changed_at := (yield from self._until_change(last, offset))) is not None:
            last, offset = changed_at - _SECOND, self._offset(changed_at)

    def _until_change(self, last: datetime, offset: timedelta) -> Generator[datetime, None, datetime | None]:
        """Yield the ticks up to the next change of the clocks, and return it: the offset is constant."""
        for wall in _sim(self.expression, (last + offset).replace(tzinfo=None)):
            at = wall.replace(tzinfo=UTC) - offset
            changed_at = self._change(last, at, offset)
            if changed_at is not None:
                return changed_at
            yield (last := at)
        return None

    def _instant(self, wall: datetime) -> datetime:
        """Return the first instant with this wall time; in a gap, the first instant after the gap."""
        at = wall.replace(tzinfo=self.zone).astimezone(UTC)
        if at.astimezone(self.zone).replace(tzinfo=None) == wall:
            return at
        return self._bisect(wall.replace(tzinfo=self.zone, fold=1).astimezone(UTC), at)

    def _change(self, start: datetime, end: datetime, offset: timedelta) -> datetime | None:
        """Return the first instant in (start, end] with another offset. No zone changes twice a day."""
        while start < end:
            probe = min(start + _DAY, end)
            if self._offset(probe) != offset:
                return self._bisect(start, probe, offset)
            start = probe
        return None

    def _bisect(self, before: datetime, after: datetime, offset: timedelta | None = None) -> datetime:
        offset = self._offset(before) if offset is None else offset
        while after - before > _SECOND:
            middle = before + (after - before) // _SECOND // 2 * _SECOND
            before, after = (middle, after) if self._offset(middle) == offset else (before, middle)
        return after

    def _offset(self, at: datetime) -> timedelta:
        return at.astimezone(self.zone).replace(tzinfo=UTC) - at


def _expanded(expression: Any) -> str:
    """Return the fields of an expression, also of an alias such as @daily."""
    if not isinstance(expression, str) or len(expression) > _MAX_EXPRESSION_LENGTH:
        raise ContractError(
            f"not a text of at most {_MAX_EXPRESSION_LENGTH} characters", field="cron", fix=_FIELDS_FIX
        )
    fields = " ".join(expression.split())
    if fields.startswith("@") and fields.lower() not in _ALIASES:
        fix = f"{_FIELDS_FIX}, or one of {', '.join(_ALIASES)}"
        raise ContractError(f"{fields!r} is not an alias", field="cron", fix=fix)
    return _ALIASES.get(fields.lower(), fields)


def _sim(expression: str, wall: datetime) -> CronSim:
    """Return the matches after a wall time without a zone."""
    try:
        return CronSim(expression, wall)
    except CronSimError as error:
        if _has_impossible_day(expression):
            message, fix = "none of its months has such a day", "use days that the months have"
            raise ContractError(f"{expression!r}: {message}", field="cron", fix=fix) from None
        raise ContractError(f"{expression!r}: {error}".lower(), field="cron", fix=_FIELDS_FIX) from None


def _has_impossible_day(expression: str) -> bool:
    """Return whether its days are valid in other months, and its months with other days."""
    fields = expression.split()
    if len(fields) not in (5, 6):
        return False
    any_day, any_month = [*fields], [*fields]
    any_day[-3] = any_month[-2] = "*"
    try:
        for variant in (any_day, any_month):
            CronSim(" ".join(variant), datetime(2000, 1, 1))
    except CronSimError:
        return False
    return True


def _zone(name: str) -> ZoneInfo:
    try:
        if name.startswith(_NOT_ZONES):
            raise ValueError(name)
        return ZoneInfo(name)
    # A folder of zones, an absolute path, a name that is not a text: each raises another error.
    except (LookupError, ValueError, OSError, TypeError, AttributeError):
        fix = "use a name of the IANA database, such as Europe/Berlin"
        raise ContractError(f"unknown time zone {name!r}", field="timezone", fix=fix) from None
