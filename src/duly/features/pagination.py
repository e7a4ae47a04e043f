"""Pagination: page sizes, and the cursors between pages."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from duly.core.errors import ContractError
from duly.jobs.request_context import checked_text

T = TypeVar("T")
MAX_PAGE_SIZE = 500


def page_size(limit: int) -> int:
    """Return the page size; raise if it is out of range."""
    if type(limit) is not int or not 1 <= limit <= MAX_PAGE_SIZE:
        raise ContractError(f"{limit!r} is out of range", field="limit", fix=f"use 1 to {MAX_PAGE_SIZE}")
    return limit


def split_page(rows: Sequence[T], size: int, key: Callable[[T], object]) -> tuple[tuple[T, ...], str | None]:
    """Return the rows of a page, and the cursor of the next page, or None on the last one.

    The caller reads one row more than the page holds. The key of the last row, a value or a tuple, becomes
    the cursor.
    """
    page = tuple(rows[:size])
    if len(rows) <= size:
        return page, None
    last = key(page[-1])
    return page, encode_cursor(*last) if isinstance(last, tuple) else encode_cursor(last)


def encode_cursor(*parts: object) -> str:
    """Return the key of a row as an opaque text."""
    return base64.urlsafe_b64encode(" ".join(map(str, parts)).encode()).decode()


def decode_cursor(after: str | None, read: Callable[..., T]) -> T | None:
    """Return the key in a cursor, as `read` makes it of its parts; None without a cursor."""
    if after is None:
        return None
    try:
        return read(*base64.b64decode(after, altchars=b"-_", validate=True).decode().split(" "))
    except (ValueError, TypeError, OverflowError):
        raise ContractError(
            "invalid cursor", field="after", fix="use `after` from the previous page"
        ) from None


def text_cursor(*parts: str) -> str:
    """Read a cursor whose key is a text, with or without spaces."""
    return checked_text("after", " ".join(parts)) or ""


def time_cursor(written: str) -> datetime:
    """Read a cursor whose key is a time."""
    return datetime.fromisoformat(written).astimezone(UTC)
