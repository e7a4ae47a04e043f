"""The tables of documents, and the statements that work with them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from duly.core.schema import Schema, read_statements, without_comments

SCHEMA = Schema("documents", "duly.apps.documents")
"""Migrated with Duly's own wherever an application includes documents."""

Connection = AsyncConnection[TupleRow]
"""In a transaction of one org, as `app.tenant_session` and `ctx.transaction()` give it."""


@cache
def statement(name: str) -> bytes:
    """Return the statement `<noun>/<verb>`, without its comments."""
    return _statements()[name]


@cache
def _statements() -> dict[str, bytes]:
    found = read_statements(Path(__file__).with_name("queries"))
    return {name: without_comments(text).encode() for name, text in found.items()}


async def rows(conn: Connection, name: str, values: Mapping[str, Any]) -> list[TupleRow]:
    """What a statement finds."""
    return await (await conn.execute(statement(name), values)).fetchall()


async def one(conn: Connection, name: str, values: Mapping[str, Any]) -> TupleRow | None:
    """The one row that a statement finds, if any."""
    return await (await conn.execute(statement(name), values)).fetchone()
