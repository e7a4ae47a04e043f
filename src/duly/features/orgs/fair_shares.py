"""How the workers are shared between the orgs, for those who look after the installation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from duly.db.pool import Connection
from duly.features.orgs import fair_shares_store as shares
from duly.features.orgs import store as orgs
from duly.features.orgs.fair_shares_store import Activity, Waiting
from duly.features.orgs.store import OrgStatus
from duly.features.pagination import decode_cursor, encode_cursor, page_size
from duly.features.queues.store import Count, counted
from duly.jobs.application import App

_MOST = 1_000
_STEPS, _HELD, _SHOWN = 1_000, 10_000, 100
_FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Share:
    """An org: what it has of the workers, what it waits for, what limits it as a whole. None is no limit."""

    org_id: UUID
    name: str
    status: OrgStatus
    running: int
    part: float
    """The part of all slots that its jobs have."""
    fair_part: float
    """What each org has that wants something, if all have the same."""
    waiting: Count
    """Counted up to 1,000."""
    oldest_waiting_at: datetime | None
    oldest_waiting_age: timedelta | None
    max_running: int | None
    starts_per_second: float | None
    max_waiting: int | None
    paused_at: datetime | None
    pause_reason: str | None

    @property
    def held_back(self) -> bool:
        """Whether its own limits keep its jobs waiting, and not the others."""
        full = self.max_running is not None and self.running >= self.max_running
        return self.paused_at is not None or full

    @property
    def short(self) -> bool:
        """Whether it waits although it has less than its fair part, and nothing of its own holds it back."""
        return bool(self.waiting.count) and self.part < self.fair_part and not self.held_back


@dataclass(frozen=True, slots=True)
class ActiveShares:
    """The orgs that want something now."""

    shares: tuple[Share, ...]
    """Who waits longest first; at most 100."""
    slots: int
    """How many jobs the living workers can hold at a time."""
    running: int
    active: int
    """How many orgs want something."""
    more: bool
    """Whether there may be more than these."""

    @property
    def short(self) -> int:
        """How many of these wait although they have less than their fair part."""
        return sum(share.short for share in self.shares)


@dataclass(frozen=True, slots=True)
class SharePage:
    """Some orgs; `after` asks for those that follow, and is None at the end."""

    shares: tuple[Share, ...]
    after: str | None


class Shares:
    """Who has what of the workers. Claims serve the orgs in turn, so that the same for each is fair."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def active(self) -> ActiveShares:
        """The orgs that have jobs running or waiting."""
        async with (await self._app.resources()).database.engine() as conn:
            now = await shares.active(conn, most=_STEPS, held=_HELD)
            first = sorted(now.running, key=lambda org: (org not in now.waiting, -now.running[org]))
            shown = first[:_SHOWN]
            found = await self._read(conn, shown, now)
        found.sort(key=lambda one: (-_seconds(one.oldest_waiting_age), -one.running, one.name))
        return ActiveShares(
            shares=tuple(found),
            slots=now.slots,
            running=sum(now.running.values()),
            active=len(now.running),
            more=now.more or len(now.running) > len(shown),
        )

    async def page(self, *, limit: int, after: str | None) -> SharePage:
        """The next orgs, by their ids."""
        size, start = page_size(limit), decode_cursor(after, UUID) or _FIRST
        async with (await self._app.resources()).database.engine() as conn:
            some = await orgs.list_orgs(conn, start, limit=size + 1)
            now = await shares.active(conn, most=_STEPS, held=_HELD)
            found = await self._read(conn, [one.org_id for one in some[:size]], now)
        return SharePage(tuple(found), encode_cursor(found[-1].org_id) if len(some) > size else None)

    async def _read(self, conn: Connection, org_ids: Sequence[UUID], now: Activity) -> list[Share]:
        return [_share(one, now) for one in await shares.of_orgs(conn, org_ids, most=_MOST + 1)]


def _share(one: Waiting, now: Activity) -> Share:
    running = now.running.get(one.org_id, 0)
    since = one.oldest_waiting_at
    return Share(
        org_id=one.org_id,
        name=one.name,
        status=OrgStatus(one.status),
        running=running,
        part=running / now.slots if now.slots else 0.0,
        fair_part=1 / len(now.running) if now.running else 1.0,
        waiting=counted(one.waiting, _MOST),
        oldest_waiting_at=since,
        oldest_waiting_age=None if since is None else one.looked_at - since,
        max_running=one.max_running,
        starts_per_second=one.starts_per_second,
        max_waiting=one.max_waiting,
        paused_at=one.paused_at,
        pause_reason=one.pause_reason,
    )


def _seconds(age: timedelta | None) -> float:
    return -1.0 if age is None else age.total_seconds()
