"""`ctx.transaction()`: what the handler writes commits with the completion of its job, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any, Protocol
from uuid import UUID

import psycopg
from psycopg.pq import TransactionStatus

from duly.model.decide import Transition
from duly.model.errors import LeaseLost, StoreError
from duly.store import work
from duly.store.claims import ClaimedJob
from duly.store.pool import Connection
from duly.store.session import ENGINE_ROLE, Database
from duly.store.statements import statement
from duly.store.sync import SyncConnection, open_tenant
from duly.store.sync import cut as cut_connection
from duly.store.watched import Watch


class Bound(Protocol):
    """A transaction that waits for the end of its attempt."""

    @property
    def is_open(self) -> bool:
        """Whether there is something to commit."""

    async def complete(self, job: ClaimedJob, to: Transition, worker_id: UUID) -> bool:
        """Settle the job in it and commit; False, and nothing is written, if the job is no longer ours."""

    async def undo(self, *, cut: bool = False) -> None:
        """Roll back what the handler wrote; cut it off if it still has the connection in its hands."""


class _Undone(Exception):
    """Leaves a session so that it rolls back."""


def _check_open(conn: Connection | SyncConnection) -> None:
    if conn.info.transaction_status is not TransactionStatus.INTRANS:
        raise StoreError(
            "the transaction had ended before the job", fix="leave errors and commits to ctx.transaction()"
        )


class BoundSession:
    """For async handlers: a session of the pool, left open."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._conn: Connection | None = None

    @property
    def is_open(self) -> bool:
        """See `Bound`."""
        return self._conn is not None

    @property
    def conn(self) -> Connection | None:
        """The open connection."""
        return self._conn

    @asynccontextmanager
    async def opened(self, database: Database, org_id: UUID) -> AsyncIterator[Connection]:
        """The handler's block. Leaving it by an error rolls back at once."""
        self._conn = await self._stack.enter_async_context(database.tenant_session(org_id))
        try:
            yield self._conn
        except BaseException:
            await self.undo()
            raise

    async def complete(self, job: ClaimedJob, to: Transition, worker_id: UUID) -> bool:
        """See `Bound`."""
        conn, self._conn = self._conn, None
        if conn is None:
            return False
        try:
            async with self._stack:
                _check_open(conn)
                await conn.execute(ENGINE_ROLE)
                if not await work.settle(conn, [(job, to)], actor_type="worker", actor_id=str(worker_id)):
                    raise _Undone
        except _Undone:
            return False
        return True

    async def undo(self, *, cut: bool = False) -> None:
        """See `Bound`."""
        conn, self._conn = self._conn, None
        if conn is not None:
            if cut:
                # In the pool it would become somebody else's, with another role and another org.
                cut_connection(conn)
            undone = _Undone()
            with suppress(_Undone, psycopg.Error):
                await self._stack.__aexit__(_Undone, undone, undone.__traceback__)


class BoundConnection:
    """For handlers that are not async: a connection of their own."""

    def __init__(self, url: str, org_id: UUID, watch: Watch | None = None) -> None:
        self._url = url
        self._watch = watch
        self._org_id = org_id
        self._conn: SyncConnection | None = None
        self._given_up = False

    @property
    def is_open(self) -> bool:
        """See `Bound`."""
        return self._conn is not None

    @property
    def conn(self) -> SyncConnection | None:
        """The open connection."""
        return self._conn

    @contextmanager
    def opened(self) -> Iterator[SyncConnection]:
        """The handler's block. Leaving it by an error rolls back at once."""
        conn = self._conn = open_tenant(self._url, self._org_id, self._watch)
        try:
            self._check_wanted()
            yield conn
            self._check_wanted()
        except BaseException:
            self._conn = None
            conn.close()
            raise

    def _check_wanted(self) -> None:
        if self._given_up:
            raise LeaseLost("the attempt has ended meanwhile", fix="stop: nothing it writes counts any more")

    async def complete(self, job: ClaimedJob, to: Transition, worker_id: UUID) -> bool:
        """See `Bound`."""
        values = work.settlement([(job, to)], actor_type="worker", actor_id=str(worker_id))
        return await asyncio.to_thread(self._complete, values)

    def _complete(self, values: dict[str, Any]) -> bool:
        conn, self._conn = self._conn, None
        if conn is None:
            return False
        try:
            _check_open(conn)
            conn.execute(ENGINE_ROLE)
            kept = conn.execute(statement("jobs/settle"), values).fetchall()
            if kept:
                psycopg.Connection.commit(conn)
            return bool(kept)
        finally:
            conn.close()  # rolls back what was not committed

    async def undo(self, *, cut: bool = False) -> None:
        """See `Bound`."""
        self._given_up = True
        conn, self._conn = self._conn, None
        if conn is None:
            return
        if cut:
            # Its thread is still inside: closing it here would take the memory from under the driver.
            cut_connection(conn)
        else:
            await asyncio.to_thread(conn.close)
