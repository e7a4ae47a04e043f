"""How the slots of the workers are divided between the orgs, for operators of the installation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from duly.db.pool import Connection
from duly.features.orgs import store
from duly.features.orgs.models import ActiveShares, OrgStatus, Share, SharePage
from duly.features.orgs.store import Activity
from duly.features.pagination import capped_count, decode_cursor, encode_cursor, page_size
from duly.jobs.application import App

_MAX_COUNT = 1_000
_MAX_STEPS, _MAX_CLAIMED = 1_000, 10_000
_MAX_ACTIVE_SHARES = 100
_FIRST_ID = UUID(int=0)
_BACKLOG_FIELDS = (
    *("org_id", "name", "oldest_waiting_at", "max_running", "starts_per_second", "max_waiting"),
    *("paused_at", "pause_reason"),
)


class FairShares:
    """The shares of orgs in the workers. Claims serve the orgs in turn, so an equal share is a fair one."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def active(self) -> ActiveShares:
        """Return the orgs that have queued or running jobs, longest wait first."""
        async with (await self._app.resources()).database.engine() as conn:
            activity = await _read_activity(conn)
            running = activity.running
            org_ids = sorted(running, key=lambda org: (org not in activity.waiting, -running[org]))
            shares = await _read_shares(conn, org_ids[:_MAX_ACTIVE_SHARES], activity)
        shares.sort(key=lambda share: (-_seconds(share.oldest_waiting_age), -share.running, share.name))
        return ActiveShares(
            shares=tuple(shares),
            slots=activity.slots,
            running=sum(running.values()),
            active=len(running),
            more=activity.more or len(running) > _MAX_ACTIVE_SHARES,
        )

    async def page(self, *, limit: int, after: str | None) -> SharePage:
        """Return the shares of all orgs, by org id."""
        size, start = page_size(limit), decode_cursor(after, UUID) or _FIRST_ID
        async with (await self._app.resources()).database.engine() as conn:
            orgs = await store.list_orgs(conn, start, limit=size + 1)
            activity = await _read_activity(conn)
            shares = await _read_shares(conn, [org.org_id for org in orgs[:size]], activity)
        return SharePage(tuple(shares), encode_cursor(shares[-1].org_id) if len(orgs) > size else None)


async def _read_activity(conn: Connection) -> Activity:
    return await store.read_activity(conn, max_steps=_MAX_STEPS, max_claimed=_MAX_CLAIMED)


async def _read_shares(conn: Connection, org_ids: Sequence[UUID], activity: Activity) -> list[Share]:
    backlogs = await store.read_backlogs(conn, org_ids, max_count=_MAX_COUNT + 1)
    return [_share(backlog, activity) for backlog in backlogs]


def _share(backlog: Mapping[str, Any], activity: Activity) -> Share:
    running, oldest = activity.running.get(backlog["org_id"], 0), backlog["oldest_waiting_at"]
    return Share(
        **{name: backlog[name] for name in _BACKLOG_FIELDS},
        status=OrgStatus(backlog["status"]),
        running=running,
        part=running / activity.slots if activity.slots else 0.0,
        fair_part=1 / len(activity.running) if activity.running else 1.0,
        waiting=capped_count(backlog["waiting"], _MAX_COUNT),
        oldest_waiting_age=None if oldest is None else backlog["read_at"] - oldest,
    )


def _seconds(age: timedelta | None) -> float:
    return -1.0 if age is None else age.total_seconds()
