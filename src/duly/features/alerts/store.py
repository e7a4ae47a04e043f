"""The table of alerts: fire, resolve, list, and mark as notified; and what the alerter measures."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from duly.db.pool import Connection
from duly.db.rows import first, read_all, rows
from duly.db.statements import statement
from duly.features.alerts.models import Alert
from duly.features.alerts.thresholds import FailingEndpoint, Firing

_MAX_DEAD = 10_000
_MAX_ENDPOINTS = 500
_MAX_UNNOTIFIED = 500


class WorkerPresence(NamedTuple):
    """Whether any worker is alive."""

    workers: int
    """Living workers."""
    silence: timedelta | None
    """Time since the last heartbeat of any worker; None if there never was a worker."""


class AlertScanCursor(NamedTuple):
    """The last alert of a dead letter that was checked; the default is before the first."""

    org_id: UUID = UUID(int=0)
    target: str = ""


async def try_lock(conn: Connection) -> bool:
    """Lock the alerts for this transaction; return False if another alerter has the lock."""
    [row] = await rows(conn, "alerts/try_lock", {})
    return bool(row["locked"])


async def read_worker_presence(conn: Connection) -> WorkerPresence:
    """Return whether any worker is alive; on an engine session."""
    [row] = await rows(conn, "alerts/read_worker_presence", {})
    return WorkerPresence(**row)


async def count_dead(conn: Connection) -> dict[str, int]:
    """Return the number of jobs that became dead letters within an hour, by queue."""
    counts = await rows(conn, "alerts/count_dead", {"since": timedelta(hours=1), "limit": _MAX_DEAD})
    return {row["queue"]: row["jobs"] for row in counts}


async def list_failing_endpoints(conn: Connection) -> tuple[FailingEndpoint, ...]:
    """Return the failing webhook endpoints, each by its host: the rest of a URL may be secret."""
    endpoints = await rows(conn, "alerts/list_failing_endpoints", {"limit": _MAX_ENDPOINTS})
    return tuple(FailingEndpoint(host=urlsplit(row.pop("url")).hostname or "", **row) for row in endpoints)


async def fire_dead_letters(conn: Connection, *, limit: int) -> int:
    """Fire an alert for each dead letter that has none; return the number of dead letters."""
    [row] = await rows(conn, "alerts/fire_dead_letters", {"limit": limit})
    return int(row["fired"])


async def resolve_dead_letters(conn: Connection, after: AlertScanCursor, *, limit: int) -> AlertScanCursor:
    """Resolve open alerts whose dead letter is resolved or gone; return where the next scan continues."""
    last = await first(conn, "alerts/resolve_dead_letters", {**after._asdict(), "limit": limit})
    return AlertScanCursor(**last) if last else AlertScanCursor()


async def fire(conn: Connection, firing: Sequence[Firing]) -> list[Alert]:
    """Fire alerts, or update those that are open; return the new ones."""
    if not firing:
        return []
    document = json.dumps([asdict(condition) for condition in firing], default=str)
    alerts = await rows(conn, "alerts/fire", {"firing": document})
    return [Alert.model_validate(row) for row in alerts if row["is_new"]]


async def resolve(conn: Connection, quiet_for: timedelta) -> list[Alert]:
    """Resolve the alerts that did not fire for so long; return them."""
    return await read_all(conn, Alert, "alerts/resolve", {"quiet_for": quiet_for})


async def list_unnotified(conn: Connection, org_id: UUID) -> list[dict[str, Any]]:
    """Return the alerts whose start or end was not notified, with `told_at` and `told_end_at`."""
    return await rows(conn, "alerts/list_unnotified", {"org_id": org_id, "limit": _MAX_UNNOTIFIED})


async def mark_notified(conn: Connection, org_id: UUID, alert_ids: Collection[UUID]) -> None:
    """Record that these alerts were notified."""
    await conn.execute(statement("alerts/mark_notified"), {"org_id": org_id, "alert_ids": list(alert_ids)})


async def list_open(conn: Connection, org_id: UUID | None, *, limit: int) -> list[Alert]:
    """Return the open alerts without dead letters: of an org on its session, or of all on the engine's."""
    name = "alerts/list_open" if org_id is None else "alerts/list_open_of_org"
    return await read_all(conn, Alert, name, {"org_id": org_id, "limit": limit})


async def list_before(
    conn: Connection,
    org_id: UUID,
    before: tuple[datetime, UUID],
    *,
    everything: bool,
    kind: str | None,
    limit: int,
) -> list[Alert]:
    """Return the next alerts of an org, newest first: the open ones, or all."""
    values = {
        "org_id": org_id,
        "before_at": before[0],
        "before_id": before[1],
        "everything": everything,
        "kind": kind,
        "limit": limit,
    }
    return await read_all(conn, Alert, "alerts/list", values)
