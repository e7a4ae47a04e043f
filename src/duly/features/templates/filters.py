"""The filters of templates. Each is bounded, accepts any value, and formats for the locale."""

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

MAX_TEXT_LENGTH = 64 * 1024
MAX_LOOP_ITEMS = 1_000
"""Further items are left out."""
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_MAX_DIGITS = 9


def check_deadline(context: Context) -> None:
    """Raise if the time of the template is over: it must not delay the messages of other orgs."""
    if time.thread_time() > context["_deadline"]:
        raise ContractError("takes too long", field="body", fix="loop over less")


def to_text(value: Any) -> str:
    """Return a value as text; null is empty."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def finalize(context: Context, value: Any) -> Any:
    """Return a value as it is printed: objects and lists as JSON, null as nothing."""
    check_deadline(context)
    if isinstance(value, Undefined | str):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else to_text(value)


@pass_context
def concat(context: Context, values: list[Any]) -> str:
    """Join the operands of `~`, up to the maximum length."""
    text = ""
    for value in values:
        text += str(finalize(context, value))
        if len(text) > MAX_TEXT_LENGTH:
            break
    return text[:MAX_TEXT_LENGTH]


class TimedList(list[Any]):
    """The items of a loop; each step checks the deadline."""

    def __init__(self, context: Context, items: list[Any]) -> None:
        super().__init__(items)
        self._context = context

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            check_deadline(self._context)
            yield item


@pass_context
def iterate(context: Context, value: Any) -> TimedList:
    """Return the items of a list, or the keys of an object; nothing for other values."""
    if isinstance(value, Undefined):
        iter(value)  # raises if undefined values are errors
    items = [*value] if isinstance(value, list | dict) else []
    return TimedList(context, items[:MAX_LOOP_ITEMS])


def default(_: str, value: Any, fallback: Any = "", boolean: bool = False) -> Any:
    """Return the fallback if the value is undefined or null; with `boolean`, also if it is empty."""
    missing = isinstance(value, Undefined) or value is None
    return fallback if missing or (boolean and not value) else value


def join(_: str, value: Any, separator: Any = "") -> str:
    """Join the items of a list."""
    between, text = to_text(separator), ""
    for number, item in enumerate(value if isinstance(value, list) else [value]):
        text += (between if number else "") + to_text(item)
        if len(text) > MAX_TEXT_LENGTH:
            break
    return text[:MAX_TEXT_LENGTH]


def length(_: str, value: Any) -> int:
    """Return the number of items or characters."""
    return len(value) if isinstance(value, list | dict | str) else 0


def rounded(_: str, value: Any, digits: Any = 0) -> Any:
    """Round a number to some decimal places."""
    if not _is_number(value):
        return value
    decimals = _decimals(digits)
    return round(float(value), decimals) if decimals else round(value)


def number(locale: str, value: Any, digits: Any = None) -> str:
    """Format a number for the locale."""
    if not _is_number(value):
        return to_text(value)
    whole = isinstance(value, int) and digits is None
    decimals = _decimals(digits) if digits is not None else 2
    text = f"{value:,}" if whole else f"{value:,.{decimals}f}"
    return text.translate({ord(","): ".", ord("."): ","}) if _is_german(locale) else text


def format_date(locale: str, value: Any, zone: Any = "UTC") -> str:
    """Format the date of a time, in UTC or in another zone."""
    at = _parse_time(value, zone)
    return to_text(value) if at is None else _local_date(locale, at)


def format_datetime(locale: str, value: Any, zone: Any = "UTC") -> str:
    """Format a time to the minute, in UTC or in another zone."""
    at = _parse_time(value, zone)
    return to_text(value) if at is None else f"{_local_date(locale, at)}, {at:%H:%M} {at.tzname()}"


def _parse_time(value: Any, zone: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(to_text(value))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(ZoneInfo(to_text(zone)))
    except (ValueError, OverflowError, OSError, KeyError):  # not a time, or not a zone
        return None


def _local_date(locale: str, at: date) -> str:
    return f"{at:%d.%m.%Y}" if _is_german(locale) else f"{at.day} {_MONTHS[at.month - 1]} {at.year}"


def _is_german(locale: str) -> bool:
    return locale.partition("-")[0] == "de"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _decimals(digits: Any) -> int:
    return min(max(digits, 0), _MAX_DIGITS) if _is_number(digits) else 0


def _with_deadline(function: Callable[..., Any]) -> Callable[..., Any]:
    @pass_context
    def _apply(context: Context, value: Any, *args: Any, **named: Any) -> Any:
        check_deadline(context)
        return function(context["_locale"], value, *args, **named)

    return _apply


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "upper": lambda _, value: to_text(value).upper(),
    "lower": lambda _, value: to_text(value).lower(),
    "title": lambda _, value: to_text(value).title(),
    "trim": lambda _, value: to_text(value).strip(),
    "default": default,
    "join": join,
    "length": length,
    "round": rounded,
    "number": number,
    "date": format_date,
    "datetime": format_datetime,
}
FILTERS = {name: _with_deadline(function) for name, function in _FUNCTIONS.items()}
"""The filters by name."""
