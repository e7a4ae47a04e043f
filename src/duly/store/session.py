"""The only doors to a connection.

A session opens a transaction, takes its role and gives the connection back at the end. Role and org are
set with SET LOCAL, first in the transaction: a session-wide SET would leak through a pooler. Only the
engine's own pool, and only where no pooler is between, takes its role once for all: a statement of the
engine is then one round trip. What a tenant does in one statement is sent as a whole, and one as well.
"""

from __future__ import annotations

import asyncio
import select
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from contextvars import Context
from datetime import timedelta
from typing import Any, Literal, LiteralString, Self, TypeVar
from uuid import UUID
from weakref import WeakSet

import psycopg
from psycopg import AsyncClientCursor, AsyncConnection, AsyncCursor
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow
from psycopg_pool import PoolTimeout

from duly.model.errors import StoreError, StoreUnavailable
from duly.store.pool import Connection, PoolSize, PoolUse, make_pool
from duly.store.prepared import Values, called, written
from duly.store.refusals import translate
from duly.store.statements import Statement
from duly.store.watched import Watch, name_of

T = TypeVar("T")

_TENANT = "begin; set local role duly_tenant; set local duly.org_id = '{}'; set local jit = off"
_AUDITOR = _TENANT.replace("duly_tenant", "duly_auditor")
# The engine's statements want nested loops over indexes; with stale statistics the planner prefers hashes, or
# to read a whole table and keep it.
_ENGINES_OWN = {
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_seqscan": "off",
    "enable_material": "off",
    "plan_cache_mode": "force_generic_plan",
}
_LOGIN = "begin read only; set local statement_timeout = '5s'; set local jit = off"
_TASTES = {"role": "duly_engine", "jit": "off", **_ENGINES_OWN}
ENGINE_ROLE = "; ".join(f"set local {name} = {value}" for name, value in _TASTES.items())
_ENGINE = f"begin; {ENGINE_ROLE}"
_ENGINE_FOR_GOOD = "; ".join(f"set {name} = {value}" for name, value in _TASTES.items())
_PLAIN = "; ".join(
    f"set local {name} to default" for name in (*_ENGINES_OWN, "lock_timeout", "statement_timeout")
)
# Somebody's open transaction may hold a row that a batch needs: the others of the batch must not wait for it.
_HURRY = "lock_timeout = '5s'"
_ONE_SNAPSHOT = "begin isolation level repeatable read"
_TASTES_AT_ONCE = "select " + ", ".join(f"set_config('{n}', '{v}', true)" for n, v in _ENGINES_OWN.items())
_TRIES = 5
_WARM = 2
_PLANS_LAST = 5.0
_UNDOING = 5.0


class Database:
    """One PostgreSQL database, reached through a pool; with `engine`, a pool for the engine alone."""

    def __init__(
        self,
        url: str,
        *,
        pooled: bool = False,
        size: PoolSize | None = None,
        engine: bool = False,
        watch: Watch | None = None,
    ) -> None:
        self._made: WeakSet[Connection] = WeakSet()
        self._engine = engine and not pooled
        self._keeps_plans = not pooled
        self._warm: list[Connection] = []
        """Of the engine's own: the last one used is the next, because it has the plans at hand."""
        self._waiting = 0
        self._closing = False
        self._trouble = ""
        self.limit: float | None = None
        """Seconds an engine session may take as a whole; a connection that leads nowhere is given up."""
        self._watch: Watch = watch or nullcontext
        self._pool = make_pool(url, size or PoolSize(), pooled=pooled, made=self._configure, watch=watch)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect, or say why not."""
        try:
            # In a context of its own: its tasks outlive the request or the job that asked first.
            opening = self._pool.open(wait=True, timeout=self._pool.timeout)
            await asyncio.create_task(opening, context=Context())
        except PoolTimeout as error:
            await self._pool.close()
            said = f"no connection: {error}{self._trouble and f': {self._trouble}'}"
            raise StoreUnavailable(said, fix="check DULY_DATABASE_URL") from error

    async def close(self) -> None:
        """Close every connection."""
        self._closing = True
        while self._warm:
            await self._pool.putconn(self._warm.pop())
        await self._pool.close()

    @property
    def use(self) -> PoolUse:
        """How busy the pool is."""
        stats = self._pool.get_stats()
        idle = stats["pool_available"] + len(self._warm)
        return PoolUse(stats["pool_size"] - idle, idle, stats["requests_waiting"])

    def drop(self) -> None:
        """Close the sockets of a pool whose event loop is gone, and with it the way to close it properly."""
        for conn in list(self._made):
            conn.pgconn.finish()

    async def _configure(self, conn: Connection) -> None:
        self._made.add(conn)
        conn.planned_at = time.monotonic()
        if not self._engine:
            return
        try:
            cursor = await conn.execute("select pg_backend_pid()")
            if await cursor.fetchone() == (
                conn.info.backend_pid,
            ):  # else there is a pooler nobody told us of
                await conn.execute(f"{_ENGINE_FOR_GOOD}; set {_HURRY}")
                conn.is_engine = True
        except psycopg.Error as error:
            self._trouble = str(error).strip()
            raise

    @asynccontextmanager
    async def tenant_session(self, org_id: UUID) -> AsyncIterator[Connection]:
        """A transaction that sees and changes what belongs to this org, and nothing else."""
        async with self._session(tenant_opening(org_id)) as conn:
            yield conn

    @asynccontextmanager
    async def auditor_session(self, org_id: UUID) -> AsyncIterator[Connection]:
        """A transaction that reads the audit trail of this org and appends to it, and can do nothing else."""
        async with self._session(_AUDITOR.format(UUID(str(org_id)))) as conn:
            yield conn

    async def tenant_statement(
        self, org_id: UUID, query: str, values: Mapping[str, Any], *, lock_timeout: timedelta | None = None
    ) -> list[TupleRow]:
        """The rows of one statement, which is a transaction of its own."""
        async with self._connection() as conn:
            bound = AsyncClientCursor(conn).mogrify(query, values)
            opening = self._opening(conn, tenant_opening(org_id))
            if lock_timeout is not None:
                opening += f"; set local lock_timeout = {int(lock_timeout.total_seconds() * 1000)}"
            cursor = await conn.execute(Statement(f"{opening}; {bound}; commit", name_of(query)))
            while cursor.description is None and cursor.nextset():
                pass
            return await cursor.fetchall()

    async def at_one_moment(
        self, org_id: UUID, mine: str, engines: str, values: Values
    ) -> tuple[list[str], list[str]]:
        """What two statements find, the org's and the engine's, as JSON: one snapshot, one round trip."""
        async with self._connection() as conn:
            opening = self._opening(conn, tenant_opening(org_id)).replace("begin", _ONE_SNAPSHOT, 1)
            try:
                return await self._at_once(conn, opening, (mine, engines), values)
            except psycopg.errors.InvalidSqlStatementName:
                # The driver has them all forgotten after some errors, and tells nobody.
                await AsyncConnection.rollback(conn)
                conn.prepared = frozenset()
                return await self._at_once(conn, opening, (mine, engines), values)

    async def _at_once(
        self, conn: Connection, opening: str, names: tuple[str, str], values: Values
    ) -> tuple[list[str], list[str]]:
        first, second = [
            await called(conn, name, values) if self._keeps_plans else written(name, values) for name in names
        ]
        both = f"{first}; set local role duly_engine; {second}"
        whole = Statement(f"{opening}; {_TASTES_AT_ONCE}; {both}; commit", names[0])
        cursor = await conn.execute(whole)
        _, mine, engines = [[row[0] for row in rows] async for rows in _found(cursor)]
        return mine, engines

    @asynccontextmanager
    async def engine_session(self) -> AsyncIterator[Connection]:
        """A transaction of the engine, which works for all orgs."""
        async with self._in_time(), self._session(_ENGINE) as conn:
            yield conn

    @asynccontextmanager
    async def login_session(self) -> AsyncIterator[Connection]:
        """A transaction that only reads, as who logged in: they know more of the server than the engine."""
        async with self._session(_LOGIN) as conn:
            yield conn

    @asynccontextmanager
    async def engine_statement(self) -> AsyncIterator[Connection]:
        """For exactly one statement of the engine, which is a transaction of its own."""
        if not self._engine:
            async with self.engine_session() as conn:
                yield conn
            return
        async with self._in_time(), self._connection() as conn:
            if conn.is_engine:
                yield conn
                return
        async with self.engine_session() as conn:
            yield conn

    async def notify(self, channel: Literal["duly_ready"]) -> None:
        """Tell whoever listens. It reads no data and needs no role."""
        async with self._connection() as conn:
            await conn.execute(f"notify {channel}")

    async def vacuum(self, table: LiteralString) -> None:
        """Clean a table, if we may and nobody does so just now. Not through a pooler: it keeps the role."""
        if not self._keeps_plans:
            return
        async with self._in_time(), self._connection() as conn:
            # Before PostgreSQL 17 the engine has no right to it, and who logs in may have.
            if conn.info.server_version >= 170000:
                await conn.execute("set role duly_engine")
            try:
                with suppress(psycopg.errors.InsufficientPrivilege):
                    await conn.execute(f"vacuum (skip_locked, index_cleanup on, truncate off) duly.{table}")
                await conn.execute(f"set role {'duly_engine' if conn.is_engine else 'none'}")
            except BaseException:
                await conn.close()  # whoever came next would have the role
                raise

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        if self.limit is None:
            yield
            return
        ends = asyncio.timeout(self.limit)
        try:
            async with ends:
                yield
        except TimeoutError:
            if ends.expired():
                raise StoreUnavailable(f"no answer within {self.limit} s", fix="check the network") from None
            raise

    def _opening(self, conn: Connection, opening: str) -> str:
        """What opens a transaction on this connection."""
        engine = opening == _ENGINE
        if conn.is_engine and not engine:
            raise StoreError("this pool is the engine's alone", fix="open another for tenants")
        if conn.is_engine:
            return "begin"
        return f"{opening}; set local {_HURRY}" if engine and self.limit is not None else opening

    @asynccontextmanager
    async def _session(self, opening: str) -> AsyncIterator[Connection]:
        async with self._connection() as conn:
            await conn.execute(self._opening(conn, opening))
            yield conn
            if conn.info.transaction_status is not TransactionStatus.INTRANS:
                raise StoreError(
                    "the session's transaction had ended", fix="leave errors and commits to the session"
                )
            with self._watch("commit"):
                await AsyncConnection.commit(conn)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        """A living connection; what an error leaves open on it is undone."""
        conn = await self._living()
        try:
            yield conn
        except BaseException as error:
            conn.prepared = frozenset()  # psycopg lets it forget all names with a rollback
            # A connection that leads nowhere must not keep whoever was cancelled because of it.
            with suppress(psycopg.Error, TimeoutError):
                async with asyncio.timeout(_UNDOING):
                    await AsyncConnection.rollback(conn)
            known = translate(error) if isinstance(error, psycopg.Error) else None
            if known is None:
                raise
            raise known from error
        finally:
            await self._give_back(conn)

    async def _living(self) -> Connection:
        """A connection. One that died while idle is replaced: nothing was sent yet."""
        for _ in range(self._pool.max_size + 1):
            conn = self._warm.pop() if self._warm else await self._get()
            try:
                if await self._is_fit(conn):
                    return conn
            except BaseException:
                await self._pool.putconn(conn)
                raise
            await self._pool.putconn(conn)
        raise StoreUnavailable("every connection was dead", fix="check the database, and try again")

    async def _is_fit(self, conn: Connection) -> bool:
        """Whether it lives. Plans are made anew now and then: one for a few rows does not serve for many."""
        if conn.closed or _has_died(conn):
            return False
        now = time.monotonic()
        if self._keeps_plans and now > conn.planned_at + _PLANS_LAST:
            conn.planned_at = now
            with suppress(psycopg.OperationalError):
                # Not by a cursor that is watched: it belongs to the connection, and to nobody's trace.
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
        idle = conn.info.transaction_status is TransactionStatus.IDLE
        wanted = self._waiting or self._closing or len(self._warm) >= _WARM
        if conn.is_engine and idle and not wanted:
            self._warm.append(conn)
        else:
            await self._pool.putconn(conn)


async def _found(cursor: AsyncCursor[TupleRow]) -> AsyncIterator[list[TupleRow]]:
    """The rows of each statement of a text that gives any."""
    more: bool | None = True
    while more:
        if cursor.pgresult and cursor.pgresult.nfields:
            yield await cursor.fetchall()
        more = cursor.nextset()


def _has_died(conn: Connection) -> bool:
    """Whether the server has hung up: there is something to read where nothing was asked, to its very end."""
    ear = select.poll()
    ear.register(conn.fileno(), select.POLLIN)
    for _ in range(3):
        if not ear.poll(0):
            return False
        try:
            conn.pgconn.consume_input()
        except psycopg.OperationalError:
            break
    conn.pgconn.finish()
    return True


def tenant_role(org_id: UUID) -> str:
    """What makes the rest of an engine's transaction a tenant's."""
    return f"{tenant_opening(org_id).removeprefix('begin; ')}; {_PLAIN}"


def tenant_opening(org_id: UUID) -> str:
    """What opens a tenant's transaction."""
    # A UUID has no characters that could end the literal.
    return _TENANT.format(UUID(str(org_id)))


async def retrying(work: Callable[[], Awaitable[T]]) -> T:
    """Run a whole transaction again when PostgreSQL says that this helps."""
    for attempt in range(1, _TRIES):
        try:
            return await work()
        except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
            await asyncio.sleep(0.005 * 2**attempt)
    return await work()
