"""What there is to do and what was done, in figures that cost the same however much there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from duly.core.job import SYSTEM_ORG
from duly.core.states import Status
from duly.db.pool import Connection
from duly.db.rows import rows
from duly.features.pagination import Count, capped_count
from duly.features.queues.models import QueueStats


class Lane(NamedTuple):
    """What waits in one lane of a queue."""

    queue: str
    waiting: int
    """Counted no further than one more than asked for."""
    oldest_waiting_at: datetime
    heads: list[UUID]
    """The first of each priority."""


@dataclass(frozen=True, slots=True)
class QueueShare:
    """What an org has waiting in a queue."""

    queue: str
    waiting: Count
    oldest_waiting_at: datetime
    """Since when the oldest waits, of those that come first."""


@dataclass(frozen=True, slots=True)
class OrgOverview:
    """What an org has. No count goes further than 10,000."""

    org_id: UUID
    looked_at: datetime
    waiting: tuple[QueueShare, ...]
    """Jobs that could start now, by queue; without those that have none."""
    scheduled: Count
    """Jobs whose time has not come, retries among them."""
    running: Count
    partial: Count
    dead_letters: Count
    """Those that are open."""
    ended: Mapping[Status, Count]
    """Jobs that ended within a day, by how."""
    suspects: Count
    """Jobs that can hardly be believed, of those that are held and of the first that wait."""
    workers: int
    """Living ones, which work for every org."""
    slots: int
    """How many jobs those can hold at a time."""

    @property
    def oldest_waiting_age(self) -> timedelta | None:
        """How long the oldest has waited."""
        since = min((share.oldest_waiting_at for share in self.waiting), default=None)
        return None if since is None else self.looked_at - since


@dataclass(frozen=True, slots=True)
class PlatformOverview:
    """What the installation has. No count goes further than 10,000."""

    looked_at: datetime
    queues: tuple[QueueStats, ...]
    """Every queue with what waits, is to come and runs, dead letters too; the weightiest first."""
    orgs: Count
    failed: Count
    """Jobs that failed within a day."""
    canceled: Count
    """Jobs that were canceled within a day."""
    suspects: Count
    """Jobs that can hardly be believed, as far as one look finds them."""
    workers: int
    """Living ones."""
    slots: int
    """How many jobs those can hold at a time."""
    database_bytes: int | None
    """None if we may not know."""


async def lanes(conn: Connection, org_id: UUID, *, most: int, heads: int) -> list[Lane]:
    """What an org has waiting, by lane."""
    values = {"org_id": org_id, "most": most, "heads": heads}
    return [
        Lane(row["lane"].partition("#")[0], row["waiting"], row["oldest_waiting_at"], row["heads"])
        for row in await rows(conn, "overview/waiting", values)
    ]


async def of_org(
    conn: Connection, org_id: UUID, *, most: int, heads: int, since: timedelta
) -> dict[str, Any]:
    """What else it has, as counts; and `doubtful`, the jobs to be asked whether they can be believed."""
    values = {"org_id": org_id, "most": most, "heads": heads, "since": since}
    [row] = await rows(conn, "overview/org", values)
    ended = {Status(name): capped_count(n, most) for name, n in row["ended"].items()}
    names = ("scheduled", "running", "partial", "dead_letters")
    return {**row, "ended": ended, **{name: capped_count(row[name], most) for name in names}}


async def of_platform(conn: Connection, *, most: int, since: timedelta) -> dict[str, Any]:
    """What there is beside the queues, as counts."""
    values = {"system": SYSTEM_ORG, "most": most, "since": since}
    [row] = await rows(conn, "overview/platform", values)
    return {**row, **{name: capped_count(row[name], most) for name in ("orgs", "failed", "canceled")}}


async def of_queues(conn: Connection, org_id: UUID, *, most: int, since: timedelta) -> list[dict[str, Any]]:
    """What an org has to come and running in each queue, and what was put right since then."""
    return await rows(conn, "overview/org_queues", {"org_id": org_id, "most": most, "since": since})


async def reconciled(conn: Connection, *, most: int, since: timedelta) -> int:
    """How many jobs of all orgs failed because the reconciler said so; one more than `most` at most."""
    [row] = await rows(conn, "overview/reconciled", {"most": most, "since": since})
    return int(row["n"])
