"""Read totals of the installation at a cost that does not depend on its size."""

from __future__ import annotations

from typing import NamedTuple

from duly.db.pool import Connection
from duly.db.rows import rows


class InstallationTotals(NamedTuple):
    """InstallationTotals of the installation. Counts are bounded; lags are in seconds."""

    workers: int
    slots: int
    dead_letters: int
    webhooks: int
    """Pending webhook deliveries, only the next of each job."""
    notifications: int
    alerts: dict[str, int]
    """Open alerts by kind."""
    relay_lag: float
    audit_lag: float


async def read_totals(conn: Connection, *, limit: int) -> InstallationTotals:
    """Return the totals in one snapshot, each counted up to `limit` + 1."""
    [row] = await rows(conn, "metrics/read_totals", {"limit": limit})
    return InstallationTotals(**row)
