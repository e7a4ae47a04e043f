"""What a statement finds, as dicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg.rows import dict_row

from duly.store.pool import Connection
from duly.store.statements import statement


async def rows(conn: Connection, name: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Everything that the statement of that name finds."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement(name), values)
        return await cursor.fetchall()


async def first(conn: Connection, name: str, values: Mapping[str, Any]) -> dict[str, Any] | None:
    """The first of it, if there is any."""
    return next(iter(await rows(conn, name, values)), None)
