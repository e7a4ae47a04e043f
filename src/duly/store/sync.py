"""A tenant's connection for code that is not async: the same door as `Database.tenant_session`."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import TupleRow

from duly.model.errors import StoreError
from duly.store.session import tenant_opening
from duly.store.watched import Watch, watched_plainly

AnyConnection = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]


class SyncConnection(psycopg.Connection[TupleRow]):
    """Bound to one org by its transaction, which therefore is not the caller's to end."""

    def commit(self) -> None:
        """Refused: what follows a commit would run without role and org."""
        raise StoreError("a session commits by itself, at its end", fix="leave the session, and open another")

    def rollback(self) -> None:
        """Refused, as a commit is; a savepoint does what is needed."""
        raise StoreError("a session rolls back when it is left by an error", fix="use conn.transaction()")


def open_tenant(url: str, org_id: UUID, watch: Watch | None = None) -> SyncConnection:
    """A connection with an open transaction of this org; whoever opened it ends it."""
    cursors = None if watch is None else watched_plainly(watch)
    conn = SyncConnection.connect(url, autocommit=True, prepare_threshold=None, cursor_factory=cursors)
    try:
        conn.execute(tenant_opening(org_id))
    except BaseException:
        conn.close()
        raise
    return conn


def cut(conn: AnyConnection) -> None:
    """End a connection that another thread or task may be using: it fails there, and is closed there."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(conn.fileno())) as same:
        same.shutdown(socket.SHUT_RDWR)


@contextmanager
def tenant_session(url: str, org_id: UUID, watch: Watch | None = None) -> Iterator[SyncConnection]:
    """A transaction that sees and changes what belongs to this org, and nothing else."""
    conn = open_tenant(url, org_id, watch)
    try:
        yield conn
        psycopg.Connection.commit(conn)
    finally:
        conn.close()  # rolls back what was not committed
