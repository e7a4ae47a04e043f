"""Statements that a connection knows by name: they travel in one text with others, and keep their plans.

Each row comes as a JSON document, because a driver takes its time with seventy columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from uuid import UUID

import psycopg

from duly.store.pool import Connection
from duly.store.statements import statement

_VALUE = re.compile(r"%\((\w+)\)s")
Values = Mapping[str, UUID | list[UUID]]


def written(name: str, values: Values) -> str:
    """A statement with its values in it, for where a pooler is between."""
    return _VALUE.sub(lambda found: _literal(values[found[1]]), _text(name))


async def called(conn: Connection, name: str, values: Values) -> str:
    """What executes a statement with these values; the first time on a connection it is prepared."""
    known, text, names = _prepared(name)
    if name not in conn.prepared:
        # It outlives its transaction: an attempt that was cut off may have left it there.
        with suppress(psycopg.errors.DuplicatePreparedStatement):
            await conn.execute(f"set local role duly_engine; prepare {known} as {text}")
        conn.prepared |= {name}
    return f"execute {known} ({', '.join([_literal(values[one]) for one in names])})"


@cache
def _prepared(name: str) -> tuple[str, str, list[str]]:
    """The name that the server knows it by, its text, and its values in their order."""
    names = list(dict.fromkeys(_VALUE.findall(_text(name))))
    text = _VALUE.sub(lambda found: f"${names.index(found[1]) + 1}", _text(name))
    return f"duly_{name.replace('/', '_')}", text, names


def _text(name: str) -> str:
    text = statement(name).replace("%%", "%")
    return f"select row_to_json(found)::text from ({text}) found"  # noqa: S608 - a statement of ours


def _literal(value: UUID | list[UUID]) -> str:
    # A UUID has no characters that could end the literal.
    return f"'{value.hex}'" if isinstance(value, UUID) else f"'{{{','.join([one.hex for one in value])}}}'"
