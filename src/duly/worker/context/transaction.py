"""`ctx.transaction()`: what the handler writes commits with the completion of its job, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any, Protocol
from uuid import UUID

import psycopg
from psycopg.pq import TransactionStatus

from duly.core.decide import Transition, finish
from duly.core.error_report import describe_error
from duly.core.errors import LeaseLost, StoreError
from duly.core.outcome import AttemptOutcome, Completed, ErrorInfo, Failed, Lost, Retried
from duly.db.database import Database
from duly.db.pool import Connection
from duly.db.session_settings import ENGINE_ROLE_SQL
from duly.db.statements import statement
from duly.db.sync_connection import SyncConnection, open_sync_tenant
from duly.db.sync_connection import abort_connection as cut_connection
from duly.db.traced_cursor import StatementTracer
from duly.worker import settle_store
from duly.worker.claim import ClaimedJob
from duly.worker.context.run import JobRun

_COMMIT_TIMEOUT = 60.0


class BoundTransaction(Protocol):
    """A transaction that commits with the completion of its attempt."""

    @property
    def is_open(self) -> bool:
        """Whether there is a transaction to commit."""

    async def complete(self, job: ClaimedJob, to: Transition, worker_id: UUID) -> bool:
        """Settle the job in it and commit; return False, and write nothing, if the lease was lost."""

    async def roll_back(self, *, cut: bool = False) -> None:
        """Roll back what the handler wrote; cut the connection if the handler still uses it."""


class _RolledBack(Exception):
    """Raised to leave a session so that it rolls back."""


def _check_open(conn: Connection | SyncConnection) -> None:
    if conn.info.transaction_status is not TransactionStatus.INTRANS:
        raise StoreError(
            "the transaction ended before its job", fix="leave errors and commits to ctx.transaction()"
        )


class BoundSession:
    """For async handlers: a session of the pool that stays open until the job ends."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._conn: Connection | None = None

    @property
    def is_open(self) -> bool:
        """See `BoundTransaction`."""
        return self._conn is not None

    @property
    def conn(self) -> Connection | None:
        """The open connection."""
        return self._conn

    @asynccontextmanager
    async def open(self, database: Database, org_id: UUID) -> AsyncIterator[Connection]:
        """Open the transaction for the handler's block. An error in it rolls back at once."""
        self._conn = await self._stack.enter_async_context(database.tenant(org_id))
        try:
            yield self._conn
        except BaseException:
            await self.roll_back()
            raise

    async def complete(self, job: ClaimedJob, to: Transition, worker_id: UUID) -> bool:
        """See `BoundTransaction`."""
        conn, self._conn = self._conn, None
        if conn is None:
            return False
        try:
            async with self._stack:
                _check_open(conn)
                await conn.execute(ENGINE_ROLE_SQL)
                if not await settle_store.settle(
                    conn, [(job, to)], actor_type="worker", actor_id=str(worker_id)
                ):
                    raise _RolledBack
        except _RolledBack:
            return False
        return True

    async def roll_back(self, *, cut: bool = False) -> None:
        """See `BoundTransaction`."""
        conn, self._conn = self._conn, None
        if conn is not None:
            if cut:
                # Back in the pool it would serve another caller, with another role and another org.
                cut_connection(conn)
            exit_error = _RolledBack()
            with suppress(_RolledBack, psycopg.Error):
                await self._stack.__aexit__(_RolledBack, exit_error, exit_error.__traceback__)


class BoundConnection:
    """For sync handlers: a connection of their own."""

    def __init__(self, url: str, org_id: UUID, watch: StatementTracer | None = None) -> None:
        self._url = url
        self._watch = watch
        self._org_id = org_id
        self._conn: SyncConnection | None = None
        self._given_up = False

    @property
    def is_open(self) -> bool:
        """See `BoundTransaction`."""
        return self._conn is not None

    @property
    def conn(self) -> SyncConnection | None:
        """The open connection."""
        return self._conn

    @contextmanager
    def open(self) -> Iterator[SyncConnection]:
        """Open the transaction for the handler's block. An error in it rolls back at once."""
        conn = self._conn = open_sync_tenant(self._url, self._org_id, self._watch)
        try:
            self._check_held()
            yield conn
            self._check_held()
        except BaseException:
            self._conn = None
            conn.close()
            raise

    def _check_held(self) -> None:
        if self._given_up:
            raise LeaseLost("the attempt has already ended", fix="stop: its writes are refused")

    async def complete(self, job: ClaimedJob, to: Transition, worker_id: UUID) -> bool:
        """See `BoundTransaction`."""
        values = settle_store.settle_values([(job, to)], actor_type="worker", actor_id=str(worker_id))
        leaving = settle_store.plain_values([job]) if job.is_plain else None
        return await asyncio.to_thread(self._complete, values, leaving)

    def _complete(self, values: dict[str, Any], leaving: dict[str, Any] | None) -> bool:
        conn, self._conn = self._conn, None
        if conn is None:
            return False
        try:
            _check_open(conn)
            conn.execute(ENGINE_ROLE_SQL)
            if leaving is not None:
                conn.execute(statement("jobs/leave_plain_path"), leaving)
            held = conn.execute(statement("jobs/settle"), values).fetchall()
            if held:
                psycopg.Connection.commit(conn)
            return bool(held)
        finally:
            conn.close()  # rolls back what was not committed

    async def roll_back(self, *, cut: bool = False) -> None:
        """See `BoundTransaction`."""
        self._given_up = True
        conn, self._conn = self._conn, None
        if conn is None:
            return
        if cut:
            # Its thread still uses it: closing it here would free memory that the driver works on.
            cut_connection(conn)
        else:
            await asyncio.to_thread(conn.close)


async def complete_bound(run: JobRun, ending: AttemptOutcome) -> AttemptOutcome | None:
    """Settle a finished attempt in its own transaction; return the ending that is still to be settled."""
    bound = run.bound
    if bound is None:
        return ending
    if not isinstance(ending, Completed):
        # A handler that did not end by itself may still be inside.
        await bound.roll_back(cut=run.abandoned or run.forced is not None)
        return ending
    if not bound.is_open:
        return ending
    try:
        async with asyncio.timeout(_COMMIT_TIMEOUT):
            held = await bound.complete(run.job, finish(run.hold, ending), run.worker_id)
    except (psycopg.DataError, ValueError, TypeError) as error:
        message = f"PostgreSQL refused the result of the handler: {type(error).__name__}"
        return Failed(ErrorInfo("result.unstorable", message))
    except (psycopg.Error, StoreError, TimeoutError) as error:
        # It may have been committed all the same. Then the fence holds, and this retry changes nothing.
        return Retried(describe_error(error, job_type=run.job.job_type))
    return None if held else Lost("another attempt has taken over")
