"""The overview of an org and of the installation, and their dashboards."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from uuid import UUID

from duly.core.freshness import Freshness
from duly.db.pool import Connection
from duly.deprecated_names import DeprecatedName
from duly.features.arguments import check_org_exists, org_uuid
from duly.features.orgs.fair_shares import FairShares
from duly.features.orgs.models import ActiveShares, SharePage
from duly.features.overview import store
from duly.features.overview.dashboard import DashboardReader
from duly.features.overview.models import Dashboard, OrgOverview, PlatformOverview, QueueShare
from duly.features.overview.store import QueuedLane
from duly.features.pagination import Count, capped_count
from duly.features.queues import service as queues
from duly.features.queues.service import MAX_COUNT
from duly.features.ttl_cache import KeyedTtlCache, TtlCache
from duly.jobs import stale_jobs
from duly.jobs.application import App

_DAY = timedelta(days=1)
_MAX_HEADS = 20
_MAX_ASSESSED, _MAX_ASSESSED_ON_DASHBOARD = 500, 100
_MAX_HEADS_OF_PLATFORM = 1_000
_STALE_COUNT_TTL = 10.0
"""A job becomes stale within minutes, not seconds."""


class Overview:
    """The current state of orgs and of the installation."""

    board = DeprecatedName("dashboard")

    def __init__(self, app: App) -> None:
        self._app = app
        self._dashboards = DashboardReader(app)
        self._shares = FairShares(app)
        self._stale_count = TtlCache(self._count_stale, _STALE_COUNT_TTL)
        self._dashboard_cache = KeyedTtlCache(self._read_dashboard)

    async def dashboard(
        self, org_id: UUID | str | None = None, *, max_age: timedelta = timedelta(0)
    ) -> Dashboard:
        """Return the dashboard of an org, or of the whole installation. Raise for an unknown org.

        It contains the activity of each queue in the last hour, minute by minute. Workers write that of the
        installation. That of an org is derived from its newest 1,000 ended jobs of each status: it may begin
        later (`since`), and has no starts and retries. Callers that accept a `max_age` share a cached one.
        """
        org = None if org_id is None else org_uuid(org_id)
        return await self._dashboard_cache.get(org, max_age.total_seconds())

    async def _read_dashboard(self, org_id: UUID | None) -> Dashboard:
        database = (await self._app.resources()).database
        if org_id is None:
            # First the caches: their lookups need a connection, and must not wait for one while holding one.
            stale, cached = await self._stale_count.get(), await self._dashboards.read_cached()
            async with database.engine() as conn:
                platform = await self._read_platform(conn, stale)
                return await self._dashboards.read_platform(conn, platform, cached)
        async with database.engine() as conn:
            org = await self._read_org(conn, org_id, max_assessed=_MAX_ASSESSED_ON_DASHBOARD)
            org_queues = await store.list_org_queues(conn, org_id, limit=MAX_COUNT, since=_DAY)
        return await self._dashboards.read_org(org, org_queues)

    async def shares(self) -> ActiveShares:
        """Return the orgs with running or queued jobs, and their shares of the workers."""
        return await self._shares.active()

    async def all_shares(self, *, limit: int = 50, after: str | None = None) -> SharePage:
        """Return the shares of all orgs, by id."""
        return await self._shares.page(limit=limit, after=after)

    async def org(self, org_id: UUID | str) -> OrgOverview:
        """Return the overview of an org. Raise for an unknown one.

        Counts stop at 10,000. Freshness is assessed for up to 500 claimed jobs, and for the first 20 queued
        ones of each priority.
        """
        async with (await self._app.resources()).database.engine() as conn:
            return await self._read_org(conn, org_uuid(org_id), max_assessed=_MAX_ASSESSED)

    async def _read_org(self, conn: Connection, org_id: UUID, *, max_assessed: int) -> OrgOverview:
        await check_org_exists(conn, org_id)
        lanes = await store.list_queued(conn, org_id, limit=MAX_COUNT, heads=_MAX_HEADS)
        fields = await store.read_org(conn, org_id, limit=MAX_COUNT, heads=max_assessed, since=_DAY)
        to_assess = [*fields.pop("to_assess"), *(job for lane in lanes for job in lane.heads)]
        stale = await _count_likely_stale(conn, [(org_id, job) for job in to_assess])
        active = fields["running"].count + fields["partial"].count + sum(lane.waiting for lane in lanes)
        return OrgOverview(
            org_id=org_id,
            waiting=_queue_shares(lanes),
            suspects=Count(count=stale, at_least=stale > 0 and active > len(to_assess)),
            **fields,
        )

    async def platform(self) -> PlatformOverview:
        """Return the overview of the installation.

        Counts stop at 10,000. Completed jobs are not counted: no index finds those of all orgs. Stale jobs
        are found as the reconciler finds them, up to 200 of each kind.
        """
        stale = await self._count_stale()
        async with (await self._app.resources()).database.engine() as conn:
            return await self._read_platform(conn, stale)

    async def _read_platform(self, conn: Connection, stale: Count) -> PlatformOverview:
        stats = await queues.read_stats(conn, max_count=MAX_COUNT, max_heads=_MAX_HEADS_OF_PLATFORM)
        fields = await store.read_platform(conn, limit=MAX_COUNT, since=_DAY)
        return PlatformOverview(queues=tuple(stats), suspects=stale, **fields)

    async def _count_stale(self) -> Count:
        """Count the likely stale jobs of all orgs, as far as one bounded scan finds them."""
        lifecycles = [job.policy.lifecycle for job in self._app.registry]
        async with (await self._app.resources()).database.engine() as conn:
            keys, more = await stale_jobs.find_stale(conn, lifecycles)
            stale = await _count_likely_stale(conn, keys)
        return Count(count=stale, at_least=more and stale > 0)


async def _count_likely_stale(conn: Connection, keys: list[tuple[UUID, UUID]]) -> int:
    evidence = await stale_jobs.read_evidence(conn, keys) if keys else []
    return sum(one.assess().state is Freshness.LIKELY_STALE for one in evidence)


def _queue_shares(lanes: list[QueuedLane]) -> tuple[QueueShare, ...]:
    """Add up the lanes of each queue."""
    by_queue: dict[str, list[QueuedLane]] = defaultdict(list)
    for lane in lanes:
        by_queue[lane.queue].append(lane)
    return tuple(
        QueueShare(
            queue,
            capped_count(sum(lane.waiting for lane in group), MAX_COUNT),
            min(lane.oldest_waiting_at for lane in group),
        )
        for queue, group in by_queue.items()
    )
