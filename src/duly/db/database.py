"""Sessions of a PostgreSQL database.

A session opens a transaction, takes its role and returns the connection at the end. Role and org are set with
SET LOCAL, first in the transaction: a session-wide SET would leak through a pooler. Only a pool that serves
the engine alone, without a pooler, sets its role once per connection: a statement of the engine is then one
round trip. A tenant's transaction of one statement is sent as one text, which is one round trip as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from contextvars import Context
from datetime import timedelta
from typing import Literal, LiteralString, Self, TypeVar
from uuid import UUID
from weakref import WeakSet

import psycopg
from psycopg import AsyncConnection, AsyncCursor
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow
from psycopg_pool import PoolTimeout

from duly.core.errors import StoreError, StoreUnavailable
from duly.db.errors import translate_error
from duly.db.pool import Connection, PoolSize, PoolUsage, make_pool
from duly.db.prepared import (
    StatementValues,
    execute_sql,
    inline_sql,
    parameters,
    rows_as_json,
    run_transaction,
)
from duly.db.session_settings import (
    BEGIN_AUDITOR,
    BEGIN_ENGINE,
    BEGIN_LOGIN,
    BEGIN_ONE_SNAPSHOT,
    ENGINE_CONNECTION,
    SET_PLANNER,
    begin_tenant_sql,
    tenant_settings,
)
from duly.db.statements import Statement
from duly.db.traced_cursor import StatementTracer, statement_name

T = TypeVar("T")
Channel = Literal["duly_ready"]

# An open transaction of the application may lock a row that a batch needs: the others must not wait for it.
_LOCK_TIMEOUT = "lock_timeout = '5s'"
_MAX_TRIES = 5
_MAX_WARM_CONNECTIONS = 2
_PLAN_LIFETIME = 5.0
_ROLLBACK_TIMEOUT = 5.0


class Database:
    """A PostgreSQL database behind a connection pool; with `engine_only`, a pool for the engine alone."""

    def __init__(
        self,
        url: str,
        *,
        pooled: bool = False,
        size: PoolSize | None = None,
        engine_only: bool = False,
        tracer: StatementTracer | None = None,
    ) -> None:
        self._connections: WeakSet[Connection] = WeakSet()
        self._engine_only = engine_only and not pooled
        self._caches_plans = not pooled
        self._warm: list[Connection] = []
        """Idle connections, last used first: their plans are cached, and the pool is slow to hand one out."""
        self._waiting = 0
        self._closing = False
        self._connect_error = ""
        self.session_timeout: float | None = None
        """Seconds that an engine session may take as a whole, also on a connection that does not respond."""
        self._trace: StatementTracer = tracer or nullcontext
        self._pool = make_pool(
            url, size or PoolSize(), pooled=pooled, configure=self._configure, tracer=tracer
        )

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect, or raise StoreUnavailable with the reason."""
        try:
            # In a context of its own: its tasks outlive the request or the job that opened the pool.
            opening = self._pool.open(wait=True, timeout=self._pool.timeout)
            await asyncio.create_task(opening, context=Context())
        except PoolTimeout as error:
            await self._pool.close()
            message = f"no connection: {error}{self._connect_error and f': {self._connect_error}'}"
            raise StoreUnavailable(message, fix="check DULY_DATABASE_URL") from error

    async def close(self) -> None:
        """Close every connection."""
        self._closing = True
        while self._warm:
            await self._pool.putconn(self._warm.pop())
        await self._pool.close()

    @property
    def usage(self) -> PoolUsage:
        """The current usage of the pool."""
        stats = self._pool.get_stats()
        idle = stats["pool_available"] + len(self._warm)
        return PoolUsage(stats["pool_size"] - idle, idle, stats["requests_waiting"])

    def drop(self) -> None:
        """Close the sockets of a pool whose event loop is closed, so that it cannot be closed properly."""
        for conn in list(self._connections):
            conn.pgconn.finish()

    async def _configure(self, conn: Connection) -> None:
        self._connections.add(conn)
        conn.planned_at = time.monotonic()
        if not self._engine_only:
            return
        try:
            cursor = await conn.execute("select pg_backend_pid()")
            # Another pid means a pooler that was not configured.
            if await cursor.fetchone() == (conn.info.backend_pid,):
                await conn.execute(f"{ENGINE_CONNECTION}; set {_LOCK_TIMEOUT}")
                conn.is_engine = True
        except psycopg.Error as error:
            self._connect_error = str(error).strip()
            raise

    @asynccontextmanager
    async def tenant(self, org_id: UUID) -> AsyncIterator[Connection]:
        """Open a transaction that reads and writes the rows of this org only."""
        async with self._session(begin_tenant_sql(org_id)) as conn:
            yield conn

    @asynccontextmanager
    async def auditor(self, org_id: UUID) -> AsyncIterator[Connection]:
        """Open a transaction that can only read and append to the audit trail of this org."""
        async with self._session(BEGIN_AUDITOR.format(UUID(str(org_id)))) as conn:
            yield conn

    async def tenant_statement(
        self,
        org_id: UUID,
        query: str,
        values: StatementValues,
        *,
        lock_timeout: timedelta | None = None,
        notify: Channel | None = None,
    ) -> list[TupleRow]:
        """Run one statement as a transaction of the org, in one round trip, and return its rows.

        The notification is sent after the commit: as part of it, it would lock out others until that is done.
        """
        statements = [tenant_settings(org_id, lock_timeout), (query, parameters(query, values))]
        conn = await self._take()
        try:
            if conn.is_engine:
                raise _for_engine_alone()
            with self._trace(statement_name(query)):
                try:
                    return await run_transaction(conn, statements, prepare=self._caches_plans, notify=notify)
                except psycopg.errors.InvalidSqlStatementName:
                    conn.prepared = {}  # psycopg has deallocated all prepared statements
                    return await run_transaction(conn, statements, prepare=self._caches_plans, notify=notify)
        except BaseException as error:
            await self._recover(conn, error)
            raise
        finally:
            await self._give_back(conn)

    async def read_in_one_snapshot(
        self, org_id: UUID, tenant_query: str, engine_query: str, values: StatementValues
    ) -> tuple[list[str], list[str]]:
        """Return the rows of a statement of the org and one of the engine as JSON, in one round trip."""
        async with self._connection() as conn:
            begin = self._begin(conn, begin_tenant_sql(org_id)).replace("begin", BEGIN_ONE_SNAPSHOT, 1)
            try:
                return await self._read_both(conn, begin, (tenant_query, engine_query), values)
            except psycopg.errors.InvalidSqlStatementName:
                # After some errors psycopg deallocates all prepared statements, without a notice.
                await AsyncConnection.rollback(conn)
                conn.prepared = {}
                return await self._read_both(conn, begin, (tenant_query, engine_query), values)

    async def _read_both(
        self, conn: Connection, begin: str, names: tuple[str, str], values: StatementValues
    ) -> tuple[list[str], list[str]]:
        first, second = [
            await execute_sql(conn, name, values)
            if self._caches_plans
            else inline_sql(rows_as_json(name), values)
            for name in names
        ]
        both = f"{first}; set local role duly_engine; {second}"
        cursor = await conn.execute(Statement(f"{begin}; {SET_PLANNER}; {both}; commit", names[0]))
        _, tenant_rows, engine_rows = [[row[0] for row in rows] async for rows in _result_sets(cursor)]
        return tenant_rows, engine_rows

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[Connection]:
        """Open a transaction of the engine, which works for all orgs."""
        async with self._in_time(), self._session(BEGIN_ENGINE) as conn:
            yield conn

    @asynccontextmanager
    async def login(self) -> AsyncIterator[Connection]:
        """Open a read-only transaction with the login role, which may read more of the server."""
        async with self._session(BEGIN_LOGIN) as conn:
            yield conn

    @asynccontextmanager
    async def engine_autocommit(self, use: str = "") -> AsyncIterator[Connection]:
        """Open a connection for exactly one statement of the engine, which is its own transaction.

        If possible, one that was taken for the same use before: it has planned its statements.
        """
        if not self._engine_only:
            async with self.engine() as conn:
                yield conn
            return
        async with self._in_time(), self._connection(use) as conn:
            if conn.is_engine:
                yield conn
                return
        async with self.engine() as conn:
            yield conn

    async def notify(self, channel: Channel) -> None:
        """Send a notification; it reads no data and needs no role."""
        async with self._connection() as conn:
            await conn.execute(f"notify {channel}")

    async def vacuum(self, table: LiteralString) -> None:
        """Vacuum a table, if allowed and not locked. Not through a pooler, which would leak the role."""
        if not self._caches_plans:
            return
        async with self._in_time(), self._connection() as conn:
            # Before PostgreSQL 17 the engine cannot have the right, but the login role may own the table.
            if conn.info.server_version >= 170000:
                await conn.execute("set role duly_engine")
            try:
                with suppress(psycopg.errors.InsufficientPrivilege):
                    await conn.execute(f"vacuum (skip_locked, index_cleanup on, truncate off) duly.{table}")
                await conn.execute(f"set role {'duly_engine' if conn.is_engine else 'none'}")
            except BaseException:
                await conn.close()  # the next user of the connection would have the role
                raise

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        if self.session_timeout is None:
            yield
            return
        timeout = asyncio.timeout(self.session_timeout)
        try:
            async with timeout:
                yield
        except TimeoutError:
            if timeout.expired():
                raise StoreUnavailable(
                    f"no answer within {self.session_timeout} s", fix="check the network"
                ) from None
            raise

    def _begin(self, conn: Connection, begin: str) -> str:
        """Return the text that opens the transaction on this connection."""
        engine = begin == BEGIN_ENGINE
        if conn.is_engine and not engine:
            raise _for_engine_alone()
        if conn.is_engine:
            return "begin"
        return f"{begin}; set local {_LOCK_TIMEOUT}" if engine and self.session_timeout is not None else begin

    @asynccontextmanager
    async def _session(self, begin: str) -> AsyncIterator[Connection]:
        async with self._connection() as conn:
            await conn.execute(self._begin(conn, begin))
            yield conn
            if conn.info.transaction_status is not TransactionStatus.INTRANS:
                raise StoreError(
                    "the transaction of the session has already ended",
                    fix="leave errors and commits to the session",
                )
            with self._trace("commit"):
                await AsyncConnection.commit(conn)

    @asynccontextmanager
    async def _connection(self, use: str = "") -> AsyncIterator[Connection]:
        """Take a live connection; on an error, roll back its transaction."""
        conn = await self._take(use)
        try:
            yield conn
        except BaseException as error:
            await self._recover(conn, error)
            raise
        finally:
            await self._give_back(conn)

    async def _recover(self, conn: Connection, error: BaseException) -> None:
        """Roll back the transaction of a connection after an error, and raise it translated if it can be."""
        if conn.pgconn.transaction_status != TransactionStatus.IDLE:
            conn.prepared = {}  # psycopg deallocates all prepared statements with a rollback
            # A connection that does not respond must not block the task that was cancelled because of it.
            with suppress(psycopg.Error, TimeoutError):
                async with asyncio.timeout(_ROLLBACK_TIMEOUT):
                    await AsyncConnection.rollback(conn)
        translated = translate_error(error) if isinstance(error, psycopg.Error) else None
        if translated is not None:
            raise translated from error

    async def _take(self, use: str = "") -> Connection:
        """Take a live connection. One that died while idle is replaced: nothing was sent on it."""
        for _ in range(self._pool.max_size + 1):
            conn = self._pop_warm(use) if self._warm else await self._get()
            try:
                if await self._is_alive(conn):
                    conn.use = use
                    return conn
            except BaseException:
                await self._pool.putconn(conn)
                raise
            await self._pool.putconn(conn)
        raise StoreUnavailable("every connection was dead", fix="check the database, and try again")

    def _pop_warm(self, use: str) -> Connection:
        """Return the connection that was last taken for this use, or else the one that was used last."""
        same = (n for n, conn in enumerate(self._warm) if conn.use == use)
        return self._warm.pop(next(same, -1))

    async def _is_alive(self, conn: Connection) -> bool:
        """Check a connection, and discard old plans: a plan for a few rows does not serve for many."""
        if conn.closed or conn.has_died():
            return False
        now = time.monotonic()
        if self._caches_plans and now > conn.planned_at + _PLAN_LIFETIME:
            conn.planned_at = now
            with suppress(psycopg.OperationalError):
                # Not by a traced cursor: the statement belongs to the connection, and to no trace.
                await AsyncCursor(conn).execute("discard plans")
        return not conn.closed

    async def _get(self) -> Connection:
        self._waiting += 1
        try:
            return await self._pool.getconn()
        except PoolTimeout as error:
            raise StoreUnavailable(str(error), fix="check the database, or raise DULY_POOL_MAX") from error
        finally:
            self._waiting -= 1

    async def _give_back(self, conn: Connection) -> None:
        idle = conn.pgconn.transaction_status == TransactionStatus.IDLE
        needed_elsewhere = self._waiting or self._closing or len(self._warm) >= _MAX_WARM_CONNECTIONS
        # From time to time a tenant's passes through the pool, which closes it at the end of its lifetime.
        young = conn.is_engine or time.monotonic() < conn.planned_at + _PLAN_LIFETIME
        if idle and young and not needed_elsewhere:
            self._warm.append(conn)
        else:
            await self._pool.putconn(conn)


def _for_engine_alone() -> StoreError:
    return StoreError("the pool is for the engine alone", fix="open another one for tenants")


async def _result_sets(cursor: AsyncCursor[TupleRow]) -> AsyncIterator[list[TupleRow]]:
    """Yield the rows of each statement of a text that returns rows."""
    more: bool | None = True
    while more:
        if cursor.pgresult and cursor.pgresult.nfields:
            yield await cursor.fetchall()
        more = cursor.nextset()


async def retry_transaction(work: Callable[[], Awaitable[T]]) -> T:
    """Run a whole transaction, and run it again after a serialization failure or a deadlock."""
    for attempt in range(1, _MAX_TRIES):
        try:
            return await work()
        except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
            await asyncio.sleep(0.005 * 2**attempt)
    return await work()
