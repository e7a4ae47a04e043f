"""Looking at a database without touching it: for the doctor, who must get in where sessions cannot.

Its connections are made one by one, last as long as the look, and read only. They are the login's own,
because the roles of the schema may be what is wrong; what only the engine sees is read in the engine's role.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from enum import StrEnum
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from duly.core.errors import StoreUnavailable
from duly.db.database import ENGINE_ROLE_SQL
from duly.db.pool import Connection
from duly.db.statements import statement

Row = dict[str, Any]

_PATIENCE = 5
_READ_ONLY = "set transaction read only; set local statement_timeout = '10s'; set local lock_timeout = '2s'"
_RIVALS = 5
"""Connections that keep the server's processes busy, so that a pooler must hand out another one."""


class Pooling(StrEnum):
    """What lies between an address and the database."""

    NONE = "none"
    SESSION = "session"
    TRANSACTION = "transaction"
    STATEMENT = "statement"


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    """One connection, for one look."""
    try:
        conn = await Connection.connect(
            url, autocommit=True, prepare_threshold=None, connect_timeout=_PATIENCE
        )
    except psycopg.OperationalError as error:
        raise StoreUnavailable(" ".join(str(error).split())) from error
    try:
        yield conn
    finally:
        await conn.close()


async def read(conn: Connection, name: str, values: Mapping[str, Any] | None = None) -> list[Row]:
    """The rows of a statement of `health/`, as the login sees them."""
    async with conn.transaction():
        await conn.execute(_READ_ONLY)
        return await _rows(conn, name, values)


@asynccontextmanager
async def as_engine(conn: Connection) -> AsyncIterator[Connection]:
    """A transaction of the engine that changes nothing."""
    async with conn.transaction():
        await conn.execute(f"{_READ_ONLY}; {ENGINE_ROLE_SQL}")
        yield conn


async def read_as_engine(conn: Connection, name: str, values: Mapping[str, Any] | None = None) -> list[Row]:
    """The rows of a statement of `health/`, as the engine sees them."""
    async with as_engine(conn):
        return await _rows(conn, name, values)


async def server(conn: Connection) -> Row:
    """Which server answers; asked without a transaction."""
    [row] = await _rows(conn, "server", None)
    return row


async def takes_role(conn: Connection, role: str) -> bool:
    """Whether this login may become that role."""
    try:
        async with conn.transaction(force_rollback=True):
            await conn.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue):
        return False
    return True


async def hears(listen_url: str, notify_url: str, patience: float) -> bool:
    """Whether a notification sent at one address arrives at the other."""
    token = uuid4().hex
    async with connected(listen_url) as listening, connected(notify_url) as sending:
        await listening.execute("listen duly_doctor")
        await sending.execute("select pg_notify('duly_doctor', %s)", [token])
        # Somebody else may be looking, too.
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                async for heard in listening.notifies():
                    if heard.payload == token:
                        return True
        return False


async def find_pooling(url: str) -> Pooling:
    """Whether transactions of one connection are handed to different processes of the server.

    A pooler tells its clients a process number of its own making. In transaction mode a busy rival is given
    the process that was ours, or we another one; in statement mode nothing can begin, so there are no rivals.
    """
    async with connected(url) as asking, AsyncExitStack() as rivals:
        first = (await server(asking))["pid"]
        proxied = first != asking.info.backend_pid
        for _ in range(_RIVALS if proxied else 1):
            rival = await rivals.enter_async_context(connected(url))
            try:
                taken = await _begin(rival) == first
            except psycopg.Error:
                return Pooling.STATEMENT
            if taken or await _moved(asking, first):
                return Pooling.TRANSACTION
        return Pooling.SESSION if proxied else Pooling.NONE


async def _begin(rival: Connection) -> int | None:
    """The process that a rival is given and keeps; None if there is none left for it."""
    try:
        async with asyncio.timeout(_PATIENCE):
            await rival.execute("begin")
            return int((await server(rival))["pid"])
    except TimeoutError:
        return None


async def _moved(asking: Connection, first: int) -> bool:
    try:
        async with asyncio.timeout(_PATIENCE):
            return bool((await server(asking))["pid"] != first)
    except TimeoutError:
        return True  # the rivals have all there is: nothing was kept for us


async def _rows(conn: Connection, name: str, values: Mapping[str, Any] | None) -> list[Row]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement(f"doctor/{name}"), values or {})
        return await cursor.fetchall()
