"""The connection pool and its connections."""

from __future__ import annotations

import asyncio
import select
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from duly.core.errors import StoreError
from duly.db.traced_cursor import StatementTracer, traced_cursor


class Connection(AsyncConnection[TupleRow]):
    """A connection inside a session. The session owns its transaction, which carries the role and the org."""

    is_engine = False
    """Whether the connection has the engine's role permanently; never behind a pooler."""
    planned_at = 0.0
    """The age of its cached plans, by the monotonic clock."""
    use = ""
    """What it was last taken for."""
    prepared: Mapping[str, bytes] = MappingProxyType({})
    """The names of its prepared statements on the server."""

    def has_died(self) -> bool:
        """Return whether the server closed the connection: unrequested input is there, up to its end."""
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        for _ in range(3):
            if not poll.poll(0):
                return False
            try:
                self.pgconn.consume_input()
            except psycopg.OperationalError:
                break
        self.pgconn.finish()
        return True

    async def commit(self) -> None:
        """Refuse: statements after a commit would run without role and org."""
        raise StoreError("a session commits at its end", fix="leave the session, and open another one")

    async def rollback(self) -> None:
        """Refuse, like a commit; use a savepoint."""
        raise StoreError("a session rolls back when an error leaves it", fix="use conn.transaction()")


Pool = AsyncConnectionPool[Connection]
_RECONNECT_TIMEOUT = 2.0
"""Seconds after which an attempt to connect is given up and begun anew."""


@dataclass(frozen=True, slots=True)
class PoolSize:
    """The number of connections of a process, and the seconds to wait for a free one."""

    min_size: int = 1
    max_size: int = 10
    timeout: float = 30.0


class PoolUsage(NamedTuple):
    """The current usage of a pool."""

    used: int
    idle: int
    waiting: int
    """Requests that wait for a connection."""


def make_pool(
    url: str,
    size: PoolSize,
    *,
    pooled: bool,
    configure: Callable[[Connection], Awaitable[None]],
    tracer: StatementTracer | None = None,
) -> Pool:
    """Return a closed pool. Behind a transaction pooler no prepared statement may outlive its transaction."""
    traced: dict[str, Any] = {} if tracer is None else {"cursor_factory": traced_cursor(tracer)}
    return AsyncConnectionPool(
        url,
        min_size=size.min_size,
        max_size=size.max_size,
        timeout=size.timeout,
        open=False,
        reconnect_timeout=_RECONNECT_TIMEOUT,
        reconnect_failed=_go_on_connecting(),
        name="duly",
        connection_class=Connection,
        configure=configure,
        # Sessions open transactions themselves, in one round trip with the role and the org.
        kwargs={
            "autocommit": True,
            "client_encoding": "utf8",
            "prepare_threshold": None if pooled else 5,
            **traced,
        },
    )


def _go_on_connecting() -> Callable[[Pool], Awaitable[None]]:
    """Return a function that lets a pool go on connecting every second.

    By itself it would double its pauses, in which callers wait although the database is there again, or wait
    for the next caller.
    """
    requests = set[asyncio.Task[None]]()

    async def connect_again(pool: Pool) -> None:
        if not requests and not pool.closed:
            # Not here: this is a task of the pool, which it needs to connect.
            request = asyncio.create_task(_request_connection(pool), name="duly-reconnect")
            requests.add(request)
            request.add_done_callback(requests.discard)

    return connect_again


async def _request_connection(pool: Pool) -> None:
    with suppress(PoolTimeout, PoolClosed):
        await pool.putconn(await pool.getconn(timeout=_RECONNECT_TIMEOUT / 2))
