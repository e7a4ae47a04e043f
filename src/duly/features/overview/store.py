"""Read the counts of an org and of the installation at a cost that does not depend on their size."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from duly.core.job import SYSTEM_ORG
from duly.core.states import Status
from duly.db.pool import Connection
from duly.db.rows import rows
from duly.features.pagination import capped_count


class QueuedLane(NamedTuple):
    """The jobs of an org in one lane of a queue that could start now."""

    queue: str
    waiting: int
    """Counted up to one more than the limit."""
    oldest_waiting_at: datetime
    heads: list[UUID]
    """The first jobs of each priority."""


async def list_queued(conn: Connection, org_id: UUID, *, limit: int, heads: int) -> list[QueuedLane]:
    """Return the lanes in which an org has queued jobs."""
    values = {"org_id": org_id, "limit": limit, "heads": heads}
    return [
        QueuedLane(row["lane"].partition("#")[0], row["waiting"], row["oldest_waiting_at"], row["heads"])
        for row in await rows(conn, "overview/list_queued", values)
    ]


async def read_org(
    conn: Connection, org_id: UUID, *, limit: int, heads: int, since: timedelta
) -> dict[str, Any]:
    """Return the other fields of the overview of an org, and `to_assess`: jobs that may be stale."""
    values = {"org_id": org_id, "limit": limit, "heads": heads, "since": since}
    [row] = await rows(conn, "overview/read_org", values)
    ended = {Status(name): capped_count(n, limit) for name, n in row["ended"].items()}
    names = ("scheduled", "running", "partial", "dead_letters")
    return {**row, "ended": ended, **{name: capped_count(row[name], limit) for name in names}}


async def read_platform(conn: Connection, *, limit: int, since: timedelta) -> dict[str, Any]:
    """Return the fields of the overview of the installation, without queues and stale jobs."""
    values = {"system": SYSTEM_ORG, "limit": limit, "since": since}
    [row] = await rows(conn, "overview/read_platform", values)
    return {**row, **{name: capped_count(row[name], limit) for name in ("orgs", "failed", "canceled")}}


async def list_org_queues(
    conn: Connection, org_id: UUID, *, limit: int, since: timedelta
) -> list[dict[str, Any]]:
    """Return all queues with the scheduled, running and recently reconciled jobs of an org."""
    return await rows(conn, "overview/list_org_queues", {"org_id": org_id, "limit": limit, "since": since})


async def count_reconciled(conn: Connection, *, limit: int, since: timedelta) -> int:
    """Count the jobs of all orgs that the reconciler failed, up to one more than the limit."""
    [row] = await rows(conn, "overview/count_reconciled", {"limit": limit, "since": since})
    return int(row["n"])
