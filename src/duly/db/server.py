"""Statistics of the database server, as far as the login role may read them."""

from __future__ import annotations

from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict

from duly.db.pool import Connection
from duly.db.rows import rows

_MAX_TABLES = 5


class TableStats(BaseModel):
    """The live and dead rows of a table."""

    model_config = ConfigDict(frozen=True)

    name: str
    live: int
    dead: int
    vacuumed_at: datetime | None


class ServerStats(BaseModel):
    """The vital signs of a server; None where the login role lacks the right, or nothing exists."""

    model_config = ConfigDict(frozen=True)

    bytes: int | None
    connections: int
    max_connections: int
    oldest_transaction: timedelta | None
    """The age of the oldest open transaction."""
    standbys: int
    replication_lag: timedelta | None
    tables: tuple[TableStats, ...]
    """The tables with the most dead rows."""


async def read_server_stats(conn: Connection) -> ServerStats:
    """Read the statistics in a login session."""
    [row] = await rows(conn, "db/read_server_stats", {"tables": _MAX_TABLES})
    return ServerStats.model_validate(row)
