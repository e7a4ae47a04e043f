"""Prepared statements by name: they are sent in one text with others, and their plans are cached.

Each row is returned as a JSON document, because psycopg is slow with seventy columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from uuid import UUID

import psycopg

from duly.db.pool import Connection
from duly.db.statements import statement

_VALUE = re.compile(r"%\((\w+)\)s")
StatementValues = Mapping[str, UUID | list[UUID]]


def inline_sql(name: str, values: StatementValues) -> str:
    """Return a statement with its values as literals, for use behind a pooler."""
    return _VALUE.sub(lambda found: _literal(values[found[1]]), _text(name))


async def execute_sql(conn: Connection, name: str, values: StatementValues) -> str:
    """Return the EXECUTE of a statement with these values, after preparing it on the connection if needed."""
    prepared, text, names = _prepared(name)
    if name not in conn.prepared:
        # It outlives its transaction: an interrupted attempt may have prepared it already.
        with suppress(psycopg.errors.DuplicatePreparedStatement):
            await conn.execute(f"set local role duly_engine; prepare {prepared} as {text}")
        conn.prepared |= {name}
    return f"execute {prepared} ({', '.join([_literal(values[one]) for one in names])})"


@cache
def _prepared(name: str) -> tuple[str, str, list[str]]:
    """Return the name of the prepared statement, its text, and the names of its values in order."""
    names = list(dict.fromkeys(_VALUE.findall(_text(name))))
    text = _VALUE.sub(lambda found: f"${names.index(found[1]) + 1}", _text(name))
    return f"duly_{name.replace('/', '_')}", text, names


def _text(name: str) -> str:
    text = statement(name).replace("%%", "%")
    return f"select row_to_json(found)::text from ({text}) found"  # noqa: S608 - a statement of ours


def _literal(value: UUID | list[UUID]) -> str:
    # A UUID has no characters that could end the literal.
    return f"'{value.hex}'" if isinstance(value, UUID) else f"'{{{','.join([one.hex for one in value])}}}'"
