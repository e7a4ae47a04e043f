"""What orgs have of the workers, and what they wait for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from duly.db.pool import Connection
from duly.db.rows import rows


class Activity(NamedTuple):
    """Who has jobs running or waiting."""

    running: dict[UUID, int]
    """How many jobs of each run; 0 of those that only wait."""
    waiting: frozenset[UUID]
    """Those of them that have jobs waiting."""
    slots: int
    """How many jobs the living workers can hold at a time."""
    more: bool
    """Whether there may be more orgs that wait."""


class Waiting(NamedTuple):
    """An org, what it has waiting, and what limits it as a whole."""

    org_id: UUID
    name: str
    status: str
    waiting: int
    oldest_waiting_at: datetime | None
    max_running: int | None
    starts_per_second: float | None
    max_waiting: int | None
    paused_at: datetime | None
    pause_reason: str | None
    looked_at: datetime


async def active(conn: Connection, *, most: int, held: int) -> Activity:
    """The orgs that want something, as far as so many steps and claimed jobs tell."""
    found = await rows(conn, "fair_shares/active", {"most": most, "held": held})
    first: dict[str, Any] = found[0] if found else {"slots": 0, "more": False}
    running = {row["org_id"]: row["running"] for row in found}
    waiting = frozenset(row["org_id"] for row in found if row["waits"])
    return Activity(running, waiting, first["slots"], first["more"])


async def of_orgs(conn: Connection, org_ids: Sequence[UUID], *, most: int) -> list[Waiting]:
    """These orgs, as far as there are such, by their ids."""
    values = {"org_ids": list(org_ids), "most": most}
    return [Waiting(**row) for row in await rows(conn, "fair_shares/orgs", values)]
