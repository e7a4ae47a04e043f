"""Several statements in one round trip: pipelined as a transaction, or as one text.

In a text they have literals, or are prepared by name; their rows are returned as JSON documents, because
psycopg is slow with seventy columns.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from itertools import count
from uuid import UUID

import psycopg
from psycopg import generators
from psycopg.abc import PQGen
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.rows import TupleRow

from duly.db.pool import Connection
from duly.db.statements import statement

_VALUE = re.compile(r"%\((\w+)\)s")
_BACKSLASH = "\\"
_UNKNOWN_OID, _BOOL_OID, _UUID_OID = 0, 16, 2950
_ARRAY_HEADER, _ELEMENT = struct.Struct(">iiIii"), b"\0\0\0\x10"
_numbers = count(1)
Value = str | int | bool | UUID | list[UUID] | bytes | None
"""A value of a statement; bytes are in PostgreSQL's binary format."""
StatementValues = Mapping[str, Value]
Parameters = tuple[Sequence[bytes | None], Sequence[int], Sequence[int]]
"""Values, whether each is in binary format, and their types; 0 leaves it to the server."""


async def run_transaction(
    conn: Connection,
    statements: Sequence[tuple[str, Parameters]],
    *,
    prepare: bool,
    notify: str | None = None,
) -> list[TupleRow]:
    """Run statements as one transaction in one round trip, and return the rows of the last one.

    Without a cursor, which takes more time than all else that a short statement needs. A notification
    follows the commit in a transaction of its own; its failure is ignored.
    """
    pgconn, new, units = conn.pgconn, list[tuple[int, str, bytes]](), 0
    async with conn.lock:
        pgconn.enter_pipeline_mode()
        if notify is not None:
            pgconn.send_query_params(b"begin", None)
            units += 1
        for query, (values, formats, types) in statements:
            name = conn.prepared.get(query)
            if not prepare:
                pgconn.send_query_params(_numbered(query)[0], values, types, formats)
            else:
                if name is None:
                    # A new one each time: what an interrupted transaction has prepared is unknown.
                    name = f"duly_{next(_numbers)}".encode()
                    pgconn.send_prepare(name, _numbered(query)[0], types)
                    new.append((units, query, name))
                    units += 1
                pgconn.send_query_prepared(name, values, formats)
            units += 1
        end = units
        if notify is not None:
            pgconn.send_query_params(b"commit", None)
            pgconn.send_query_params(f"notify {notify}".encode(), None)
            units += 2
        pgconn.pipeline_sync()
        results = await conn.wait(_receive(pgconn, units + 1))
    if new:
        done = {query: name for at, query, name in new if results[at].status == ExecStatus.COMMAND_OK}
        conn.prepared = {**conn.prepared, **done}
    # Up to the commit, which is the next one: the statement named `commit`, or the end of the pipeline.
    for result in results[: end + 1]:
        if result.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(result)
    last = results[end - 1]
    if not last.ntuples:
        return []
    rows = Transformer(conn)
    rows.set_pgresult(last)
    return rows.load_rows(0, last.ntuples, tuple)


def _receive(pgconn: PGconn, units: int) -> PQGen[list[PGresult]]:
    """Send what is pending, and receive the results of so many statements and ends of transactions."""
    yield from generators.send(pgconn)
    results: list[PGresult] = []
    for _ in range(units):
        results += yield from generators.fetch_many(pgconn)
    pgconn.exit_pipeline_mode()
    return results


@lru_cache(maxsize=1024)
def _numbered(query: str) -> tuple[bytes, list[str]]:
    """Return a statement with numbered parameters, and the names of their values in order."""
    names = list(dict.fromkeys(_VALUE.findall(query)))
    text = _VALUE.sub(lambda found: f"${names.index(found[1]) + 1}", query).replace("%%", "%")
    return text.encode(), names


def parameters(query: str, values: StatementValues) -> Parameters:
    """Return the parameters of a statement as the protocol sends them."""
    encoded: list[bytes | None] = []
    formats, types = [], []
    for name in _numbered(query)[1]:
        value = values[name]
        formats.append(type(value) is bytes)
        types.append(_BOOL_OID if type(value) is bool else _UNKNOWN_OID)
        if value is None or type(value) is bytes:
            encoded.append(value)
        elif type(value) is str:
            if "\0" in value:
                raise psycopg.DataError("PostgreSQL text cannot contain NUL (0x00) characters")
            encoded.append(value.encode())
        elif type(value) is bool:
            encoded.append(b"t" if value else b"f")
        else:
            encoded.append((_uuid_array(value) if isinstance(value, list) else str(value)).encode())
    return encoded, formats, types


def binary_uuid_array(digits: Sequence[str]) -> bytes:
    """Return an array of UUIDs, given as hexadecimal digits, in PostgreSQL's binary format."""
    ids = bytes.fromhex("".join(digits))
    parts = [ids[at : at + 16] for at in range(0, len(ids), 16)]
    # One dimension from 1, without nulls; each element follows its length.
    return _ARRAY_HEADER.pack(1, 0, _UUID_OID, len(parts), 1) + b"".join(map(_ELEMENT.__add__, parts))


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
        conn.prepared = {**conn.prepared, name: prepared.encode()}
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
        value = _uuid_array(value)
    # The server reads it in its own encoding, where no other character contains a quote. Whether a backslash
    # is special depends on a setting, except with this prefix.
    text = str(value).replace("'", "''")
    return f"e'{text.replace(_BACKSLASH, _BACKSLASH * 2)}'" if _BACKSLASH in text else f"'{text}'"


def _uuid_array(ids: Sequence[UUID]) -> str:
    return f"{{{','.join([one.hex for one in ids])}}}"
