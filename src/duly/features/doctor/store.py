"""Read-only connections for checks, which must work where sessions of the application cannot.

Each connection is opened for one check and belongs to the login itself, because the roles of the schema may
be what is wrong; what only the engine may read is read in the role of the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from enum import StrEnum
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql

from duly.core.errors import StoreUnavailable
from duly.db.pool import Connection
from duly.db.rows import rows
from duly.db.session_settings import ENGINE_ROLE_SQL

Row = dict[str, Any]

_CONNECT_TIMEOUT = 5
_READ_ONLY = "set transaction read only; set local statement_timeout = '10s'; set local lock_timeout = '2s'"
_MAX_RIVALS = 5
"""Connections that occupy server processes, so that a pooler must hand out another one."""


class Pooling(StrEnum):
    """The pooler between a URL and the database."""

    NONE = "none"
    SESSION = "session"
    TRANSACTION = "transaction"
    STATEMENT = "statement"


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Connection]:
    """Open a connection for one check."""
    try:
        conn = await Connection.connect(
            url, autocommit=True, prepare_threshold=None, connect_timeout=_CONNECT_TIMEOUT
        )
    except psycopg.OperationalError as error:
        raise StoreUnavailable(" ".join(str(error).split())) from error
    try:
        yield conn
    finally:
        await conn.close()


@asynccontextmanager
async def read_only(conn: Connection, *, as_engine: bool) -> AsyncIterator[Connection]:
    """Open a read-only transaction with the rights of the login or of the engine."""
    async with conn.transaction():
        await conn.execute(f"{_READ_ONLY}; {ENGINE_ROLE_SQL}" if as_engine else _READ_ONLY)
        yield conn


async def read_server(conn: Connection) -> Row:
    """Return the server and the process that answers, without a transaction."""
    [row] = await rows(conn, "doctor/read_server", {})
    return row


async def can_set_role(conn: Connection, role: str) -> bool:
    """Return whether the login may take a role."""
    try:
        async with conn.transaction(force_rollback=True):
            await conn.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue):
        return False
    return True


async def notification_arrives(listen_url: str, notify_url: str, timeout: float) -> bool:
    """Return whether a notification sent at one URL arrives at the other."""
    token = uuid4().hex
    async with connect(listen_url) as listener, connect(notify_url) as sender:
        await listener.execute("listen duly_doctor")
        await sender.execute("select pg_notify('duly_doctor', %s)", [token])
        # Another doctor may send notifications, too.
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                async for notification in listener.notifies():
                    if notification.payload == token:
                        return True
        return False


async def detect_pooling(url: str) -> Pooling:
    """Return whether transactions of one connection may run in different processes of the server.

    A pooler reports process numbers of its own to its clients. In transaction mode a busy rival is given the
    process that was ours, or we another one; in statement mode no transaction can begin.
    """
    async with connect(url) as conn, AsyncExitStack() as rivals:
        first = (await read_server(conn))["pid"]
        proxied = first != conn.info.backend_pid
        for _ in range(_MAX_RIVALS if proxied else 1):
            rival = await rivals.enter_async_context(connect(url))
            try:
                taken = await _begin(rival) == first
            except psycopg.Error:
                return Pooling.STATEMENT
            if taken or await _has_moved(conn, first):
                return Pooling.TRANSACTION
        return Pooling.SESSION if proxied else Pooling.NONE


async def _begin(rival: Connection) -> int | None:
    """Begin a transaction; return the process that serves it, None if the pooler has none left."""
    try:
        async with asyncio.timeout(_CONNECT_TIMEOUT):
            await rival.execute("begin")
            return int((await read_server(rival))["pid"])
    except TimeoutError:
        return None


async def _has_moved(conn: Connection, first: int) -> bool:
    try:
        async with asyncio.timeout(_CONNECT_TIMEOUT):
            return bool((await read_server(conn))["pid"] != first)
    except TimeoutError:
        return True  # the rivals hold all processes, also the one that was ours
