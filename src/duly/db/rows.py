"""Run a statement and return its rows, as dicts or as resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from psycopg.rows import dict_row
from pydantic import BaseModel

from duly.db.pool import Connection
from duly.db.statements import statement

Resource = TypeVar("Resource", bound=BaseModel)
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


async def read_all(
    conn: Connection, resource: type[Resource], name: str, values: Mapping[str, Any]
) -> list[Resource]:
    """Return all rows of a statement as resources."""
    return [resource.model_validate(row) for row in await rows(conn, name, values)]


async def read_first(
    conn: Connection, resource: type[Resource], name: str, values: Mapping[str, Any]
) -> Resource | None:
    """Return the first row as a resource, if there is one."""
    return next(iter(await read_all(conn, resource, name, values)), None)
