"""What a monitor asks beside the queues, at the same price however much there is."""

from __future__ import annotations

from typing import NamedTuple

from duly.db.pool import Connection
from duly.db.rows import rows


class Beside(NamedTuple):
    """Counts go no further than asked for; ages are in seconds."""

    workers: int
    slots: int
    dead_letters: int
    webhooks: int
    """Messages that are still to be delivered."""
    notifications: int
    alerts: dict[str, int]
    """Those that are open, by kind."""
    relay_lag: float
    audit_lag: float


async def beside(conn: Connection, *, most: int) -> Beside:
    """All of it, at one moment."""
    [row] = await rows(conn, "overview/figures", {"most": most})
    return Beside(**row)
