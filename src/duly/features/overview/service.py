"""The figures of an org and of the whole installation, for whoever looks after them."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from uuid import UUID

from duly.core.freshness import Freshness
from duly.db.pool import Connection
from duly.features.arguments import check_org_exists, org_uuid
from duly.features.orgs.fair_shares import FairShares
from duly.features.orgs.models import ActiveShares, SharePage
from duly.features.overview import store as overview
from duly.features.overview.dashboard import Boards
from duly.features.overview.models import Board
from duly.features.overview.store import Lane, OrgOverview, PlatformOverview, QueueShare
from duly.features.pagination import Count, capped_count
from duly.features.queues import store as queues
from duly.features.queues.service import MAX_COUNT
from duly.features.ttl_cache import KeyedTtlCache, TtlCache
from duly.jobs import stale_jobs
from duly.jobs.application import App

__all__ = ["Count", "OrgOverview", "Overview", "PlatformOverview", "QueueShare"]

_DAY = timedelta(days=1)
_HEADS = 20
_HELD, _HELD_ON_BOARD = 500, 100
_HEADS_OF_ALL = 1_000
_DOUBTS_LAST = 10.0
"""Seconds: whether jobs can be believed is a matter of minutes."""


class Overview:
    """What is to be done, what is being done, and what came of it."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._boards = Boards(app)
        self._shares = FairShares(app)
        self._doubts = TtlCache(self._suspected, _DOUBTS_LAST)
        self._recent = KeyedTtlCache(self._board)

    async def board(self, org_id: UUID | str | None = None, *, age: timedelta = timedelta(0)) -> Board:
        """Everything that an overview shows: of an org, or of the whole installation. An unknown org raises.

        With what each queue did in the last hour, minute by minute. For the installation the workers wrote
        that down; for an org it is read from the newest 1,000 jobs of each kind that ended, so that it may
        begin later (`since`), and knows nothing of starts and retries. Who looks again and again may have
        one of a certain `age`, together with all others who do.
        """
        whose = None if org_id is None else org_uuid(org_id)
        return await self._recent.get(whose, age.total_seconds())

    async def _board(self, whose: UUID | None) -> Board:
        if whose is None:
            return await self._board_of_platform()
        async with (await self._app.resources()).database.engine() as conn:
            seen = await self._of_org(conn, whose, held=_HELD_ON_BOARD)
            lines = await overview.of_queues(conn, whose, most=MAX_COUNT, since=_DAY)
        return await self._boards.of_org(seen, lines)

    async def _board_of_platform(self) -> Board:
        doubts = await self._doubts.get()
        async with (await self._app.resources()).database.engine() as conn:
            seen = await self._of_platform(conn, doubts)
            told = await self._boards.read(conn)
        return await self._boards.of_platform(seen, told)

    async def shares(self) -> ActiveShares:
        """The orgs that have jobs running or waiting, and what they have of the workers."""
        return await self._shares.active()

    async def all_shares(self, *, limit: int = 50, after: str | None = None) -> SharePage:
        """Every org with the same, by their ids."""
        return await self._shares.page(limit=limit, after=after)

    async def org(self, org_id: UUID | str) -> OrgOverview:
        """The figures of an org. An unknown one raises.

        Counts stop at 10,000. Up to 500 of the jobs that are held, and the first 20 of each priority that
        wait, are asked whether they can be believed.
        """
        async with (await self._app.resources()).database.engine() as conn:
            return await self._of_org(conn, org_uuid(org_id), held=_HELD)

    async def _of_org(self, conn: Connection, whose: UUID, held: int) -> OrgOverview:
        await check_org_exists(conn, whose)
        lanes = await overview.lanes(conn, whose, most=MAX_COUNT, heads=_HEADS)
        rest = await overview.of_org(conn, whose, most=MAX_COUNT, heads=held, since=_DAY)
        asked = [*rest.pop("doubtful"), *(job for lane in lanes for job in lane.heads)]
        stale = await _stale(conn, [(whose, job) for job in asked])
        active = rest["running"].count + rest["partial"].count + sum(lane.waiting for lane in lanes)
        more = stale > 0 and active > len(asked)
        return OrgOverview(
            org_id=whose, waiting=_shares(lanes), suspects=Count(count=stale, at_least=more), **rest
        )

    async def platform(self) -> PlatformOverview:
        """The figures of the whole installation.

        Counts stop at 10,000. What completed is not counted: no index finds that for all orgs. Suspects are
        looked for as the reconciler does, up to 200 of each kind.
        """
        doubts = await self._suspected()
        async with (await self._app.resources()).database.engine() as conn:
            return await self._of_platform(conn, doubts)

    async def _of_platform(self, conn: Connection, doubts: Count) -> PlatformOverview:
        stats = await queues.read_stats(conn, max_count=MAX_COUNT, max_heads=_HEADS_OF_ALL)
        rest = await overview.of_platform(conn, most=MAX_COUNT, since=_DAY)
        return PlatformOverview(queues=tuple(stats), suspects=doubts, **rest)

    async def _suspected(self) -> Count:
        async with (await self._app.resources()).database.engine() as conn:
            found, more = await self.suspicious(conn)
            stale = await _stale(conn, found)
        return Count(count=stale, at_least=more and stale > 0)

    async def suspicious(self, conn: Connection) -> tuple[list[tuple[UUID, UUID]], bool]:
        """Jobs of all orgs that look suspicious, each once; and whether there may be more."""
        return await stale_jobs.find_stale(conn, [job.policy.lifecycle for job in self._app.registry])


async def _stale(conn: Connection, jobs: list[tuple[UUID, UUID]]) -> int:
    judged = await stale_jobs.read_evidence(conn, jobs) if jobs else []
    return sum(one.assess().state is Freshness.LIKELY_STALE for one in judged)


def _shares(lanes: list[Lane]) -> tuple[QueueShare, ...]:
    """The lanes of a queue together."""
    by_queue: dict[str, list[Lane]] = defaultdict(list)
    for lane in lanes:
        by_queue[lane.queue].append(lane)
    return tuple(
        QueueShare(
            queue,
            capped_count(sum(lane.waiting for lane in some), MAX_COUNT),
            min(lane.oldest_waiting_at for lane in some),
        )
        for queue, some in by_queue.items()
    )
