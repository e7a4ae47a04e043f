"""The tables of documents, and the statements that work with them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from duly.core.schema import Schema

SCHEMA = Schema("documents", "duly.apps.documents")
"""Migrated with Duly's own wherever an application includes documents."""

Connection = AsyncConnection[TupleRow]
"""In a transaction of one org, as `app.tenant_session` and `ctx.transaction()` give it."""


@cache
def statement(name: str) -> bytes:
    """The text of `queries/<noun>/<verb>.sql`, without its header."""
    path = resources.files("duly.apps.documents").joinpath("queries", f"{name}.sql")
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("--")).strip().encode()


async def rows(conn: Connection, name: str, values: Mapping[str, Any]) -> list[TupleRow]:
    """What a statement finds."""
    return await (await conn.execute(statement(name), values)).fetchall()


async def one(conn: Connection, name: str, values: Mapping[str, Any]) -> TupleRow | None:
    """The one row that a statement finds, if any."""
    return await (await conn.execute(statement(name), values)).fetchone()
