"""Sessions of a tenant for synchronous code, like `Database.tenant`."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import TupleRow

from duly.core.errors import StoreError
from duly.db.session_settings import begin_tenant_sql
from duly.db.traced_cursor import StatementTracer, traced_sync_cursor

AnyConnection = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]


class SyncConnection(psycopg.Connection[TupleRow]):
    """A connection inside a session. The session owns its transaction, which carries the role and the org."""

    def commit(self) -> None:
        """Refuse: statements after a commit would run without role and org."""
        raise StoreError("a session commits at its end", fix="leave the session, and open another one")

    def rollback(self) -> None:
        """Refuse, like a commit; use a savepoint."""
        raise StoreError("a session rolls back when an error leaves it", fix="use conn.transaction()")


def open_sync_tenant(url: str, org_id: UUID, tracer: StatementTracer | None = None) -> SyncConnection:
    """Return a connection with an open transaction of this org, which the caller ends."""
    cursors = None if tracer is None else traced_sync_cursor(tracer)
    conn = SyncConnection.connect(url, autocommit=True, prepare_threshold=None, cursor_factory=cursors)
    try:
        conn.execute(begin_tenant_sql(org_id))
    except BaseException:
        conn.close()
        raise
    return conn


def abort_connection(conn: AnyConnection) -> None:
    """Shut down a connection that another thread or task uses, which then fails and closes it."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(conn.fileno())) as same:
        same.shutdown(socket.SHUT_RDWR)


@contextmanager
def sync_tenant(url: str, org_id: UUID, tracer: StatementTracer | None = None) -> Iterator[SyncConnection]:
    """Open a transaction that reads and writes the rows of this org only."""
    conn = open_sync_tenant(url, org_id, tracer)
    try:
        yield conn
        psycopg.Connection.commit(conn)
    finally:
        conn.close()  # rolls back what was not committed
