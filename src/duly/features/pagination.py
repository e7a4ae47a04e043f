"""Pagination: page sizes, the cursors between pages, and counts that stop at a maximum."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.core.errors import ContractError
from duly.db.pool import Connection
from duly.features.arguments import check_org_exists, required_text
from duly.jobs.application import App
from duly.jobs.request_context import checked_text

T = TypeVar("T")
MAX_PAGE_SIZE = 500


class Count(BaseModel):
    """A number of rows, counted up to a maximum."""

    model_config = ConfigDict(frozen=True)

    count: int
    at_least: bool
    """Whether there may be more."""

    def __str__(self) -> str:
        return f"{self.count}+" if self.at_least else str(self.count)


def capped_count(count: int, maximum: int) -> Count:
    """Return the count of a statement that stops at `maximum` + 1."""
    return Count(count=min(count, maximum), at_least=count > maximum)


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


async def read_org_page(
    app: App,
    org_id: UUID,
    read: Callable[[Connection, int], Awaitable[Sequence[T]]],
    key: Callable[[T], object],
    *,
    limit: int,
) -> tuple[tuple[T, ...], str | None]:
    """Return a page of an org's rows and the cursor of the next page; an unknown org raises.

    `read` gets a connection and the number of rows to read.
    """
    size = page_size(limit)
    async with app.tenant_session(org_id) as conn:
        rows = await read(conn, size + 1)
        if not rows:
            await check_org_exists(conn, org_id)
    return split_page(rows, size, key)


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


def text_pair_cursor(first: str, *second: str) -> tuple[str, str]:
    """Read a cursor whose key is two texts, the second with or without spaces."""
    return required_text("after", first), required_text("after", " ".join(second))
