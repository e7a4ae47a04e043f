"""The only two doors to a connection.

Both open a transaction, take their role and give the connection back at the end. Role and org are
set with SET LOCAL, first in the transaction: a session-wide SET would leak through a pooler.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Self, TypeVar
from uuid import UUID
from weakref import WeakSet

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus
from psycopg_pool import PoolTimeout

from duly.model.errors import StoreError, StoreUnavailable
from duly.store.pool import Connection, PoolSize, make_pool
from duly.store.refusals import translate

T = TypeVar("T")

_TENANT = "begin; set local role duly_tenant; set local duly.org_id = '{}'; set local jit = off"
# The engine's statements want nested loops over indexes; with stale statistics the planner prefers hashes.
ENGINE_ROLE = (
    "set local role duly_engine; set local jit = off; set local enable_hashjoin = off; "
    "set local enable_mergejoin = off; set local enable_seqscan = off; "
    "set local plan_cache_mode = force_generic_plan"
)
_ENGINE = f"begin; {ENGINE_ROLE}"
_ENGINES_OWN = ("enable_hashjoin", "enable_mergejoin", "enable_seqscan", "plan_cache_mode")
_PLAIN = "; ".join(
    f"set local {name} to default" for name in (*_ENGINES_OWN, "lock_timeout", "statement_timeout")
)
# Somebody's open transaction may hold a row that a batch needs: the others of the batch must not wait for it.
_HURRY = "set local lock_timeout = '5s'"
_TRIES = 5
_UNDOING = 5.0


class Database:
    """One PostgreSQL database, reached through a pool."""

    def __init__(self, url: str, *, pooled: bool = False, size: PoolSize | None = None) -> None:
        self._made: WeakSet[Connection] = WeakSet()
        self.limit: float | None = None
        """Seconds an engine session may take as a whole; a connection that leads nowhere is given up."""
        self._pool = make_pool(url, size or PoolSize(), pooled=pooled, made=self._made.add)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect, or say why not."""
        try:
            await self._pool.open(wait=True, timeout=self._pool.timeout)
        except PoolTimeout as error:
            await self._pool.close()
            raise StoreUnavailable(f"no connection: {error}", fix="check DULY_DATABASE_URL") from error

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.close()

    def drop(self) -> None:
        """Close the sockets of a pool whose event loop is gone, and with it the way to close it properly."""
        for conn in list(self._made):
            conn.pgconn.finish()

    @asynccontextmanager
    async def tenant_session(self, org_id: UUID) -> AsyncIterator[Connection]:
        """A transaction that sees and changes what belongs to this org, and nothing else."""
        async with self._session(tenant_opening(org_id)) as conn:
            yield conn

    @asynccontextmanager
    async def engine_session(self) -> AsyncIterator[Connection]:
        """A transaction of the engine, which works for all orgs."""
        if self.limit is None:
            async with self._session(_ENGINE) as conn:
                yield conn
            return
        ends = asyncio.timeout(self.limit)
        try:
            async with ends, self._session(f"{_ENGINE}; {_HURRY}") as conn:
                yield conn
        except TimeoutError:
            if ends.expired():
                raise StoreUnavailable(f"no answer within {self.limit} s", fix="check the network") from None
            raise

    @asynccontextmanager
    async def _session(self, opening: str) -> AsyncIterator[Connection]:
        conn = await self._opened(opening)
        try:
            yield conn
            if conn.info.transaction_status is not TransactionStatus.INTRANS:
                raise StoreError(
                    "the session's transaction had ended", fix="leave errors and commits to the session"
                )
            await AsyncConnection.commit(conn)
        except BaseException as error:
            # A connection that leads nowhere must not keep whoever was cancelled because of it.
            with suppress(psycopg.Error, TimeoutError):
                async with asyncio.timeout(_UNDOING):
                    await AsyncConnection.rollback(conn)
            known = translate(error) if isinstance(error, psycopg.Error) else None
            if known is None:
                raise
            raise known from error
        finally:
            await self._pool.putconn(conn)

    async def _opened(self, opening: str) -> Connection:
        """An open transaction. A connection that died while idle is replaced: nothing was sent yet."""
        for _ in range(self._pool.max_size + 1):
            try:
                conn = await self._pool.getconn()
            except PoolTimeout as error:
                raise StoreUnavailable(
                    str(error), fix="check the database, or raise DULY_POOL_MAX"
                ) from error
            try:
                await conn.execute(opening)
            except psycopg.OperationalError:
                await self._pool.putconn(conn)
            except BaseException:
                await self._pool.putconn(conn)
                raise
            else:
                return conn
        raise StoreUnavailable("every connection was dead", fix="check the database, and try again")


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
