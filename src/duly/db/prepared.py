"""Statements that are sent in one text with others: with literals, or prepared by name with cached plans.

Rows of prepared statements are returned as JSON documents, because psycopg is slow with seventy columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from uuid import UUID

import psycopg
from psycopg import generators
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.rows import TupleRow

from duly.db.pool import Connection
from duly.db.statements import statement

_VALUE = re.compile(r"%\((\w+)\)s")
_BACKSLASH = "\\"
Value = str | int | bool | UUID | list[UUID] | None
StatementValues = Mapping[str, Value]


async def run_transaction(conn: Connection, text: str) -> list[TupleRow]:
    """Run a transaction in one text, and return its rows; errors after its commit are ignored.

    Without a cursor, which takes more time than all else that a short statement needs.
    """
    async with conn.lock:
        conn.pgconn.send_query(text.encode())
        results = await conn.wait(generators.execute(conn.pgconn))
    rows: list[TupleRow] = []
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(result)
        if result.command_status == b"COMMIT":
            break
        if result.ntuples:
            values = Transformer(conn)
            values.set_pgresult(result)
            rows = values.load_rows(0, result.ntuples, tuple)
    return rows


def inline_sql(query: str, values: StatementValues) -> str:
    """Return a statement with its values as literals."""
    return query % {name: _literal(value) for name, value in values.items()}


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
    text = rows_as_json(name).replace("%%", "%")
    names = list(dict.fromkeys(_VALUE.findall(text)))
    text = _VALUE.sub(lambda found: f"${names.index(found[1]) + 1}", text)
    return f"duly_{name.replace('/', '_')}", text, names


def rows_as_json(name: str) -> str:
    """Return a statement that returns each row of another as a JSON document."""
    return f"select row_to_json(found)::text from ({statement(name)}) found"  # noqa: S608 - a statement of ours


def _literal(value: Value) -> str:
    if value is None or isinstance(value, int):
        return "null" if value is None else f" {value}"  # not a comment after another minus
    if isinstance(value, list):
        value = f"{{{','.join([one.hex for one in value])}}}"
    # The server reads it in its own encoding, where no other character contains a quote. Whether a backslash
    # is special depends on a setting, except with this prefix.
    text = str(value).replace("'", "''")
    return f"e'{text.replace(_BACKSLASH, _BACKSLASH * 2)}'" if _BACKSLASH in text else f"'{text}'"
