"""How the database server is, as far as whoever logged in may know."""

from __future__ import annotations

from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict

from duly.store.pool import Connection
from duly.store.rows import rows

_TABLES = 5


class Table(BaseModel):
    """A table, and how many of its rows are dead."""

    model_config = ConfigDict(frozen=True)

    name: str
    live: int
    dead: int
    vacuumed_at: datetime | None


class Server(BaseModel):
    """What one looks at first. None is what we may not know, or what there is none of."""

    model_config = ConfigDict(frozen=True)

    bytes: int | None
    connections: int
    max_connections: int
    oldest_transaction: timedelta | None
    """How long it has been open."""
    standbys: int
    replication_lag: timedelta | None
    tables: tuple[Table, ...]
    """Those with most dead rows."""


async def look(conn: Connection) -> Server:
    """On a session of the login."""
    [row] = await rows(conn, "overview/server", {"tables": _TABLES})
    return Server.model_validate(row)
