"""The connection pool: how connections are made, and nothing of what is done with them."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool

Connection = AsyncConnection[TupleRow]
Pool = AsyncConnectionPool[Connection]


@dataclass(frozen=True, slots=True)
class PoolSize:
    """How many connections a process keeps, and how long it waits for one."""

    smallest: int = 1
    largest: int = 10
    patience: float = 30.0


def make_pool(url: str, size: PoolSize, *, pooled: bool) -> Pool:
    """A closed pool. Behind a transaction pooler no prepared statement may outlive its transaction."""
    return AsyncConnectionPool(
        url,
        min_size=size.smallest,
        max_size=size.largest,
        timeout=size.patience,
        open=False,
        name="duly",
        # Transactions are opened by the sessions, in one round trip with the role and the org.
        kwargs={"autocommit": True, "prepare_threshold": None if pooled else 5},
    )
