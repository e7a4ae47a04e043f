"""The schema of documents and its statements."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from duly.core.schema import Schema, read_statements, without_comments

SCHEMA = Schema("documents", "duly.apps.documents")
"""Migrated together with Duly's own schema in every application that includes documents."""

Connection = AsyncConnection[TupleRow]
"""A connection in a transaction of one org, from `app.tenant_session` or `ctx.transaction()`."""


@cache
def statement(name: str) -> bytes:
    """Return the statement `<noun>/<verb>`, without its comments."""
    return _statements()[name]


@cache
def _statements() -> dict[str, bytes]:
    texts = read_statements(Path(__file__).with_name("queries"))
    return {name: without_comments(text).encode() for name, text in texts.items()}


async def fetch_all(conn: Connection, name: str, values: Mapping[str, Any]) -> list[TupleRow]:
    """Execute a statement and return all its rows."""
    return await (await conn.execute(statement(name), values)).fetchall()


async def fetch_one(conn: Connection, name: str, values: Mapping[str, Any]) -> TupleRow | None:
    """Execute a statement and return its first row, if any."""
    return await (await conn.execute(statement(name), values)).fetchone()
