"""Alerts: opened, seen again, over, and told."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.db.pool import Connection
from duly.db.rows import rows
from duly.db.statements import statement
from duly.features.alerts.rules import EndpointFigures, Firing, Kind, Severity

_HOUR = timedelta(hours=1)
_MOST = 10_000
_AT_ONCE = 500


class Alert(BaseModel):
    """What somebody should look at, or should have."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    alert_id: UUID
    kind: Kind
    target: str
    """What it is about: a queue, a job, an endpoint, or the installation."""
    severity: Severity
    summary: str
    detail: dict[str, Any]
    measured: float | None
    threshold: float | None
    fired_at: datetime
    seen_at: datetime
    """When it was found to be so for the last time."""
    resolved_at: datetime | None


class Presence(NamedTuple):
    """Who works."""

    workers: int
    """Living ones."""
    silence: timedelta | None
    """How long ago one was heard of; None if there never was one."""


class Looked(NamedTuple):
    """The last alert of a dead letter that was looked at; as it is made, none."""

    org_id: UUID = UUID(int=0)
    target: str = ""


async def take_turn(conn: Connection) -> bool:
    """Be the one who looks, for this transaction; False if somebody else is."""
    [row] = await rows(conn, "alerts/take_turn", {})
    return bool(row["mine"])


async def presence(conn: Connection) -> Presence:
    """Whether anybody works; on an engine session."""
    [row] = await rows(conn, "alerts/workers", {})
    return Presence(**row)


async def dead(conn: Connection) -> dict[str, int]:
    """How many jobs died within an hour, by queue."""
    found = await rows(conn, "alerts/dead", {"since": _HOUR, "most": _MOST})
    return {row["queue"]: row["jobs"] for row in found}


async def failing_endpoints(conn: Connection) -> tuple[EndpointFigures, ...]:
    """Webhooks that reach nobody. Of each only the host is told: the rest of an address may be secret."""
    found = await rows(conn, "alerts/failing_endpoints", {"limit": _AT_ONCE})
    return tuple(EndpointFigures(host=urlsplit(row.pop("url")).hostname or "", **row) for row in found)


async def add_letters(conn: Connection, *, limit: int) -> int:
    """One alert for each dead letter that has none; how many letters were looked at."""
    [row] = await rows(conn, "alerts/add_letters", {"limit": limit})
    return int(row["added"])


async def end_letters(conn: Connection, after: Looked, *, limit: int) -> Looked:
    """End what is open of dead letters that are resolved or gone; the last that was looked at."""
    found = await rows(conn, "alerts/end_letters", {**after._asdict(), "limit": limit})
    return Looked(**found[0]) if found else Looked()


async def fire(conn: Connection, firing: Sequence[Firing]) -> list[Alert]:
    """What is wrong now; those of them that are new."""
    if not firing:
        return []
    document = json.dumps([asdict(one) for one in firing], default=str)
    found = await rows(conn, "alerts/fire", {"firing": document})
    return [Alert.model_validate(row) for row in found if row["is_new"]]


async def resolve(conn: Connection, calm: timedelta) -> list[Alert]:
    """End what was not seen for so long; those that are over now."""
    return [Alert.model_validate(row) for row in await rows(conn, "alerts/resolve", {"calm": calm})]


async def to_tell(conn: Connection, org_id: UUID) -> list[dict[str, Any]]:
    """Alerts whose beginning or end nobody was told of, with `told_at` and `told_end_at`."""
    return await rows(conn, "alerts/to_tell", {"org_id": org_id, "limit": _AT_ONCE})


async def told(conn: Connection, org_id: UUID, alert_ids: Collection[UUID]) -> None:
    """Note that these were told."""
    await conn.execute(statement("alerts/told"), {"org_id": org_id, "alert_ids": list(alert_ids)})


async def unresolved(conn: Connection, org_id: UUID | None, *, limit: int) -> list[Alert]:
    """What is wrong now, but for dead letters: of an org, on its session, or of all, on the engine's."""
    name = "alerts/open" if org_id is None else "alerts/open_of_org"
    found = await rows(conn, name, {"org_id": org_id, "limit": limit})
    return [Alert.model_validate(row) for row in found]


async def newest(
    conn: Connection,
    org_id: UUID,
    before: tuple[datetime, UUID],
    *,
    everything: bool,
    kind: str | None,
    limit: int,
) -> list[Alert]:
    """The next alerts of an org, the newest first: those that are open, or all."""
    values = {
        "org_id": org_id,
        "before_at": before[0],
        "before_id": before[1],
        "everything": everything,
        "kind": kind,
        "limit": limit,
    }
    return [Alert.model_validate(row) for row in await rows(conn, "alerts/list", values)]
