"""Run a statement and return its rows as dicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg.rows import dict_row

from duly.db.pool import Connection
from duly.db.statements import statement

PREFER_INDEX_ORDER = "set local enable_bitmapscan = off; set local enable_sort = off"
"""Read in index order until the transaction ends.

With poor statistics the planner would sort a whole table although an index has its rows in order.
"""


async def rows(conn: Connection, name: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all rows of the statement of that name."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement(name), values)
        return await cursor.fetchall()


async def first(conn: Connection, name: str, values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the first row, if there is one."""
    return next(iter(await rows(conn, name, values)), None)
