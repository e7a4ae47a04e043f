"""Pages: how long one may be, and the text that asks for the next one."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from duly.core.errors import ContractError
from duly.jobs.request_context import checked_text

T = TypeVar("T")
_LARGEST = 500


def page_size(limit: int) -> int:
    """How many, within reason."""
    if type(limit) is not int or not 1 <= limit <= _LARGEST:
        raise ContractError(f"{limit!r} is out of range", field="limit", fix=f"use 1 to {_LARGEST}")
    return limit


def encode_cursor(*parts: object) -> str:
    """A place as a text that callers hand back unread."""
    return base64.urlsafe_b64encode(" ".join(map(str, parts)).encode()).decode()


def decode_cursor(after: str | None, read: Callable[..., T]) -> T | None:
    """The place behind such a text, read from its parts; None at the beginning."""
    if after is None:
        return None
    try:
        return read(*base64.b64decode(after, altchars=b"-_", validate=True).decode().split(" "))
    except (ValueError, TypeError, OverflowError):
        raise ContractError("no such page", field="after", fix="pass `after` of the page before") from None


def text_cursor(*parts: str) -> str:
    """Reads a place that is a text of its own, with spaces or without."""
    return checked_text("after", " ".join(parts)) or ""


def time_cursor(written: str) -> datetime:
    """Reads a place that is a time."""
    return datetime.fromisoformat(written).astimezone(UTC)
