"""The connection pool: how connections are made, and nothing of what is done with them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool

from duly.model.errors import StoreError
from duly.store.watched import Watch, watched


class Connection(AsyncConnection[TupleRow]):
    """A connection inside a session. Its transaction is the session's: it carries the role and the org."""

    is_engine = False
    """Whether it has taken the engine's role for good. Never one that leads to a pooler."""
    planned_at = 0.0
    """Since when it keeps its plans, by the monotonic clock."""
    prepared: frozenset[str] = frozenset()
    """The statements that it knows by their names."""

    async def commit(self) -> None:
        """Refused: what follows a commit would run without role and org."""
        raise StoreError("a session commits by itself, at its end", fix="leave the session, and open another")

    async def rollback(self) -> None:
        """Refused, as a commit is; a savepoint does what is needed."""
        raise StoreError("a session rolls back when it is left by an error", fix="use conn.transaction()")


Pool = AsyncConnectionPool[Connection]


@dataclass(frozen=True, slots=True)
class PoolSize:
    """How many connections a process keeps, and how long it waits for one."""

    smallest: int = 1
    largest: int = 10
    patience: float = 30.0


class PoolUse(NamedTuple):
    """What a pool is doing now."""

    used: int
    idle: int
    waiting: int
    """Who would like to have a connection, and has none."""


def make_pool(
    url: str,
    size: PoolSize,
    *,
    pooled: bool,
    made: Callable[[Connection], Awaitable[None]],
    watch: Watch | None = None,
) -> Pool:
    """A closed pool. Behind a transaction pooler no prepared statement may outlive its transaction."""
    seen: dict[str, Any] = {} if watch is None else {"cursor_factory": watched(watch)}
    return AsyncConnectionPool(
        url,
        min_size=size.smallest,
        max_size=size.largest,
        timeout=size.patience,
        open=False,
        name="duly",
        connection_class=Connection,
        configure=made,
        # Transactions are opened by the sessions, in one round trip with the role and the org.
        kwargs={"autocommit": True, "prepare_threshold": None if pooled else 5, **seen},
    )
