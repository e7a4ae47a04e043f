"""When a schedule ticks. Pure: the moment is an argument, never a clock.

An expression has five fields, or six with the seconds first, and is read in a time zone. Cronsim knows the
calendar; the zone is ours, because the days on which clocks change need more care than it takes:

- A fixed time (neither minute nor hour begins with `*`) ticks once a day. In the spring gap it ticks at the
  first moment after the gap, in the autumn fold at the first of the two.
- Anything else follows the clock on the wall as it runs: nothing in the gap, and the hour of the fold twice.
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
_LONGEST = 200
# What lies beside the zones: the machine's own one, and copies that count leap seconds.
_NOT_ZONES = ("localtime", "posix", "right/")
_FIELDS = "use five fields (minute hour day month weekday), or six with the seconds first"
_SHORT = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Missed(StrEnum):
    """What becomes of ticks that nobody was there to run."""

    SKIP = "skip"
    """Run what is at most a tolerance late; note the rest as missed."""
    ONCE = "once"
    """Run the latest; note the others as missed."""
    ALL = "all"
    """Run every one, however late."""

    def to_run(
        self, due: Sequence[datetime], *, more: bool, now: datetime, tolerance: timedelta
    ) -> Sequence[datetime]:
        """Which of these due ticks are run; `more` says that later ones are due as well."""
        match self:
            case Missed.ALL:
                return due
            case Missed.SKIP:
                return [at for at in due if now - at <= tolerance]
            case Missed.ONCE:
                return [] if more else due[-1:]


class Disposition(StrEnum):
    """What became of a tick."""

    ENQUEUED = "enqueued"
    MISSED = "missed"


@dataclass(frozen=True, slots=True)
class Cron:
    """An expression in its zone."""

    expression: str
    zone: ZoneInfo

    @classmethod
    def parse(cls, expression: str, timezone: str = "UTC") -> Self:
        """Read both, or say which one is wrong."""
        expression = _written_out(expression)
        _sim(expression, datetime(2000, 1, 1))
        return cls(expression, _zone(timezone))

    @property
    def fixed(self) -> bool:
        """Whether it names times of the day, rather than a rhythm."""
        minute, hour = self.expression.split()[-5:-3]
        return not minute.startswith("*") and not hour.startswith("*")

    def after(self, moment: datetime) -> datetime | None:
        """The first tick after a moment; None if there is none in fifty years."""
        return next(self.ticks(moment), None)

    def due(self, after: datetime, now: datetime, limit: int) -> list[datetime]:
        """The ticks after one moment and up to another, so many at most."""
        return list(islice(takewhile(lambda at: at <= now, self.ticks(after)), limit))

    def ticks(self, after: datetime) -> Iterator[datetime]:
        """Every tick after a moment, in UTC, strictly increasing."""
        start = after.astimezone(UTC).replace(microsecond=0)
        return self._at_times(start) if self.fixed else self._in_rhythm(start)

    def _at_times(self, last: datetime) -> Iterator[datetime]:
        for wall in _sim(self.expression, last.astimezone(self.zone).replace(tzinfo=None)):
            at = self._instant(wall)
            # Several times may fall into one gap, and the second hour of a fold looks like the first.
            if at > last:
                yield (last := at)

    def _in_rhythm(self, last: datetime) -> Iterator[datetime]:
        offset = self._offset(last)
        while (changed_at := (yield from self._until_change(last, offset))) is not None:
            last, offset = changed_at - _SECOND, self._offset(changed_at)

    def _until_change(self, last: datetime, offset: timedelta) -> Generator[datetime, None, datetime | None]:
        """From one change of the clocks to the next, which is returned, wall and UTC are a constant apart."""
        for wall in _sim(self.expression, (last + offset).replace(tzinfo=None)):
            at = wall.replace(tzinfo=UTC) - offset
            changed_at = self._change(last, at, offset)
            if changed_at is not None:
                return changed_at
            yield (last := at)
        return None

    def _instant(self, wall: datetime) -> datetime:
        """When the wall shows this for the first time; if it never does, the first moment after."""
        at = wall.replace(tzinfo=self.zone).astimezone(UTC)
        if at.astimezone(self.zone).replace(tzinfo=None) == wall:
            return at
        return self._bisect(wall.replace(tzinfo=self.zone, fold=1).astimezone(UTC), at)

    def _change(self, start: datetime, end: datetime, offset: timedelta) -> datetime | None:
        """The first moment in (start, end] that is not at this offset. No zone changes twice a day."""
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


def _written_out(expression: Any) -> str:
    """The fields, also of a word such as @daily."""
    if not isinstance(expression, str) or len(expression) > _LONGEST:
        raise ContractError(f"not a text of at most {_LONGEST} characters", field="cron", fix=_FIELDS)
    said = " ".join(expression.split())
    if said.startswith("@") and said.lower() not in _SHORT:
        fix = f"{_FIELDS}, or one of {', '.join(_SHORT)}"
        raise ContractError(f"{said!r} names no time", field="cron", fix=fix)
    return _SHORT.get(said.lower(), said)


def _sim(expression: str, wall: datetime) -> CronSim:
    """The matches after a wall time without a zone."""
    try:
        return CronSim(expression, wall)
    except CronSimError as error:
        if _days_not_of_months(expression):
            fix = "name days that the months have"
            raise ContractError(f"{expression!r}: such a day never comes", field="cron", fix=fix) from None
        raise ContractError(f"{expression!r}: {error}".lower(), field="cron", fix=_FIELDS) from None


def _days_not_of_months(expression: str) -> bool:
    """Whether its days are good in other months, and its months with other days."""
    fields = expression.split()
    if len(fields) not in (5, 6):
        return False
    any_day, any_month = [*fields], [*fields]
    any_day[-3] = any_month[-2] = "*"
    try:
        for each in (any_day, any_month):
            CronSim(" ".join(each), datetime(2000, 1, 1))
    except CronSimError:
        return False
    return True


def _zone(name: str) -> ZoneInfo:
    try:
        if name.startswith(_NOT_ZONES):
            raise ValueError(name)
        return ZoneInfo(name)
    # A folder of zones, an absolute path, a name that is no text: each raises something else.
    except (LookupError, ValueError, OSError, TypeError, AttributeError):
        fix = "use a name of the IANA database, such as Europe/Berlin"
        raise ContractError(f"no time zone {name!r}", field="timezone", fix=fix) from None
