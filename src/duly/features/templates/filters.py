"""What templates may do with a value. Each is bounded, takes any value, and speaks the recipient's tongue."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from jinja2 import Undefined, pass_context
from jinja2.runtime import Context

from duly.core.errors import ContractError

LONGEST_TEXT = 64 * 1024
MOST_ROUNDS = 1_000
"""Of a loop; what follows is left out."""
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_MOST_DIGITS = 9


def tick(context: Context) -> None:
    """Raise if the time is over: what a tenant writes must not keep others waiting."""
    if time.thread_time() > context["_until"]:
        raise ContractError("takes too long", field="body", fix="loop over less")


def shown(value: Any) -> str:
    """A value as it is written: nothing for null."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def written(context: Context, value: Any) -> Any:
    """A value as it stands in a text: objects and lists as JSON, null as nothing."""
    tick(context)
    if isinstance(value, Undefined | str):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else shown(value)


@pass_context
def joined(context: Context, values: list[Any]) -> str:
    """What `~` makes of its values, which is cut where it is too long."""
    text = ""
    for value in values:
        text += str(written(context, value))
        if len(text) > LONGEST_TEXT:
            break
    return text[:LONGEST_TEXT]


class Each(list[Any]):
    """What a loop goes over, watched at each step."""

    def __init__(self, context: Context, items: list[Any]) -> None:
        super().__init__(items)
        self._context = context

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            tick(self._context)
            yield item


@pass_context
def each(context: Context, value: Any) -> Each:
    """The items of a list, or the keys of an object; of anything else none."""
    if isinstance(value, Undefined):
        iter(value)  # raises where what is not there is an error
    items = [*value] if isinstance(value, list | dict) else []
    return Each(context, items[:MOST_ROUNDS])


def default(_: str, value: Any, fallback: Any = "", boolean: bool = False) -> Any:
    """Something else if it is not there or null; with `boolean`, also if it is empty."""
    missing = isinstance(value, Undefined) or value is None
    return fallback if missing or (boolean and not value) else value


def join(_: str, value: Any, separator: Any = "") -> str:
    """The items of a list, with something between them."""
    between, text = shown(separator), ""
    for number, item in enumerate(value if isinstance(value, list) else [value]):
        text += (between if number else "") + shown(item)
        if len(text) > LONGEST_TEXT:
            break
    return text[:LONGEST_TEXT]


def length(_: str, value: Any) -> int:
    """How many items, or characters."""
    return len(value) if isinstance(value, list | dict | str) else 0


def rounded(_: str, value: Any, digits: Any = 0) -> Any:
    """A number with so many digits behind the point."""
    if not _is_number(value):
        return value
    return round(float(value), kept) if (kept := _digits(digits)) else round(value)


def number(locale: str, value: Any, digits: Any = None) -> str:
    """A number as people of that language write it."""
    if not _is_number(value):
        return shown(value)
    whole = isinstance(value, int) and digits is None
    kept = _digits(digits) if digits is not None else 2
    text = f"{value:,}" if whole else f"{value:,.{kept}f}"
    return text.translate({ord(","): ".", ord("."): ","}) if _german(locale) else text


def day(locale: str, value: Any, zone: Any = "UTC") -> str:
    """The date of a moment, in UTC or in the zone that is named."""
    at = _moment(value, zone)
    return shown(value) if at is None else _day(locale, at)


def moment(locale: str, value: Any, zone: Any = "UTC") -> str:
    """A moment to the minute, in UTC or in the zone that is named."""
    at = _moment(value, zone)
    return shown(value) if at is None else f"{_day(locale, at)}, {at:%H:%M} {at.tzname()}"


def _moment(value: Any, zone: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(shown(value))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(ZoneInfo(shown(zone)))
    except (ValueError, OverflowError, OSError, KeyError):  # no moment, or no zone
        return None


def _day(locale: str, at: date) -> str:
    return f"{at:%d.%m.%Y}" if _german(locale) else f"{at.day} {_MONTHS[at.month - 1]} {at.year}"


def _german(locale: str) -> bool:
    return locale.partition("-")[0] == "de"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _digits(digits: Any) -> int:
    return min(max(digits, 0), _MOST_DIGITS) if _is_number(digits) else 0


def _watched(work: Callable[..., Any]) -> Callable[..., Any]:
    @pass_context
    def applied(context: Context, value: Any, *args: Any, **named: Any) -> Any:
        tick(context)
        return work(context["_locale"], value, *args, **named)

    return applied


_WORKS: dict[str, Callable[..., Any]] = {
    "upper": lambda _, value: shown(value).upper(),
    "lower": lambda _, value: shown(value).lower(),
    "title": lambda _, value: shown(value).title(),
    "trim": lambda _, value: shown(value).strip(),
    "default": default,
    "join": join,
    "length": length,
    "round": rounded,
    "number": number,
    "date": day,
    "datetime": moment,
}
FILTERS = {name: _watched(work) for name, work in _WORKS.items()}
"""Those that templates may name."""
