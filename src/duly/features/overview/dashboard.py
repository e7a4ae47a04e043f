"""Read dashboards: few bounded statements; slow ones are cached."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from duly.core.freshness import FreshnessLabel
from duly.core.policy import DEAD_LETTER_QUEUE
from duly.core.states import Status
from duly.db.pool import Connection
from duly.db.rows import PREFER_INDEX_ORDER
from duly.db.server import ServerStats, read_server_stats
from duly.features.alerts.models import Alert, Severity
from duly.features.alerts.service import list_open
from duly.features.dead_letters.service import list_failure_groups
from duly.features.metrics.service import read_totals
from duly.features.overview import store
from duly.features.overview.models import (
    HOUR,
    MINUTE,
    MINUTES,
    Dashboard,
    DashboardQueue,
    OrgOverview,
    PlatformDetail,
    PlatformOverview,
    sum_counts,
)
from duly.features.pagination import Count, capped_count
from duly.features.queues import service as queues
from duly.features.ttl_cache import TtlCache
from duly.jobs.application import App
from duly.worker import queue_stats
from duly.worker.queue_stats import OrgMinutes, QueueActivity, QueueMinute

_MAX_COUNT = 10_000
_MAX_ALERTS = 50
_MAX_FAILURES = 20
_MAX_DEAD_LETTERS = 1_000
_MAX_WORKERS = 200
_MAX_ENDED_JOBS = 1_000
_DAY = timedelta(days=1)
_SERVER_TTL = 15.0
_MINUTES_TTL = 4.0
"""Workers write their minutes every five seconds."""
_RECENT_MINUTES, _REREAD_INTERVAL = timedelta(minutes=3), 120.0
_ZERO = Count(count=0, at_least=False)
_NO_ACTIVITY = (QueueActivity(),) * MINUTES


class CachedStats(NamedTuple):
    """Statistics that are slow to read."""

    minutes: list[QueueMinute]
    server: ServerStats


class DashboardReader:
    """Reads dashboards; caches the server's statistics and the minutes of all queues."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._server = TtlCache(self._read_server, _SERVER_TTL)
        self._minutes = TtlCache(self._read_minutes, _MINUTES_TTL)
        self._last_minutes: list[QueueMinute] = []
        self._all_read_at = float("-inf")

    async def read_cached(self) -> CachedStats:
        """Return the statistics that the dashboard of the installation takes from caches."""
        return CachedStats(await self._minutes.get(), await self._server.get())

    async def read_platform(
        self, conn: Connection, overview: PlatformOverview, cached: CachedStats
    ) -> Dashboard:
        """Return the dashboard of the installation, on an engine session."""
        totals = await read_totals(conn, limit=_MAX_COUNT)
        open_alerts = await list_open(conn, None, limit=_MAX_ALERTS)
        failures = await list_failure_groups(conn, None, limit=_MAX_FAILURES, max_count=_MAX_DEAD_LETTERS)
        workers = await queues.list_workers(conn, limit=_MAX_WORKERS)
        reconciled = await store.count_reconciled(conn, limit=_MAX_COUNT, since=_DAY)
        minutes = _minutes_by_queue(cached.minutes, overview.looked_at)
        stats = [queue for queue in overview.queues if queue.queue != DEAD_LETTER_QUEUE]
        waiting = sum_counts(queue.waiting for queue in stats)
        scheduled = sum_counts(queue.scheduled for queue in stats)
        running = sum_counts(queue.running for queue in stats)
        return Dashboard(
            org_id=None,
            looked_at=overview.looked_at,
            queues=tuple(
                DashboardQueue(
                    queue=queue.queue,
                    paused_at=queue.paused_at,
                    pause_reason=queue.pause_reason,
                    waiting=queue.waiting,
                    scheduled=queue.scheduled,
                    running=queue.running,
                    oldest_waiting_at=queue.oldest_waiting_at,
                    minutes=minutes.get(queue.queue, _NO_ACTIVITY),
                )
                for queue in stats
            ),
            since=overview.looked_at - HOUR,
            waiting=waiting,
            scheduled=scheduled,
            running=running,
            failed=overview.failed,
            dead_letters=capped_count(totals.dead_letters, _MAX_COUNT),
            freshness={
                **_active_freshness(sum_counts([waiting, scheduled, running]), overview.suspects),
                FreshnessLabel.RECONCILED_FAILED: capped_count(reconciled, _MAX_COUNT),
            },
            alerts=_by_severity(open_alerts),
            failures=tuple(failures),
            workers=overview.workers,
            slots=overview.slots,
            platform=PlatformDetail(tuple(workers), cached.server, totals),
        )

    async def read_org(self, overview: OrgOverview, org_queues: list[dict[str, Any]]) -> Dashboard:
        """Return the dashboard of an org; `org_queues` are its jobs in each queue."""
        org_id = overview.org_id
        async with self._app.tenant_session(org_id) as conn:
            await conn.execute(PREFER_INDEX_ORDER)
            ended = await queue_stats.list_ended(conn, org_id, HOUR, limit=_MAX_ENDED_JOBS)
            open_alerts = await list_open(conn, org_id, limit=_MAX_ALERTS)
            failures = await list_failure_groups(
                conn, org_id, limit=_MAX_FAILURES, max_count=_MAX_DEAD_LETTERS
            )
        running = sum_counts([overview.running, overview.partial])
        waiting = sum_counts(share.waiting for share in overview.waiting)
        reconciled = org_queues[0]["reconciled"] if org_queues else 0
        all_ended = sum_counts(overview.ended.values())
        return Dashboard(
            org_id=org_id,
            looked_at=overview.looked_at,
            queues=_org_queues(overview, org_queues, ended),
            since=ended.since or overview.looked_at - HOUR,
            waiting=waiting,
            scheduled=overview.scheduled,
            running=running,
            failed=overview.ended[Status.FAILED],
            dead_letters=overview.dead_letters,
            freshness={
                **_active_freshness(sum_counts([waiting, overview.scheduled, running]), overview.suspects),
                FreshnessLabel.RECONCILED_FAILED: capped_count(reconciled, _MAX_COUNT),
                FreshnessLabel.TERMINAL_NORMAL: _minus(all_ended, reconciled),
            },
            alerts=_by_severity(open_alerts),
            failures=tuple(failures),
            workers=overview.workers,
            slots=overview.slots,
            platform=None,
        )

    async def _read_server(self) -> ServerStats:
        async with (await self._app.resources()).database.login() as conn:
            return await read_server_stats(conn)

    async def _read_minutes(self) -> list[QueueMinute]:
        """Return the last hour. Minutes that are over seldom change: they are read again now and then."""
        now = time.monotonic()
        read_all = now > self._all_read_at + _REREAD_INTERVAL
        async with (await self._app.resources()).database.engine() as conn:
            minutes = await queue_stats.list_minutes(conn, HOUR if read_all else _RECENT_MINUTES)
        if read_all:
            self._all_read_at = now
        else:
            first = minutes[0].minute if minutes else datetime.max.replace(tzinfo=UTC)
            minutes = [*(one for one in self._last_minutes if one.minute < first), *minutes]
        self._last_minutes = minutes
        return minutes


def _org_queues(
    overview: OrgOverview, rows: list[dict[str, Any]], ended: OrgMinutes
) -> tuple[DashboardQueue, ...]:
    shares = {share.queue: share for share in overview.waiting}
    minutes = _minutes_by_queue(ended.minutes, overview.looked_at)
    return tuple(
        DashboardQueue(
            queue=row["queue"],
            paused_at=row["paused_at"],
            pause_reason=None,
            waiting=share.waiting if (share := shares.get(row["queue"])) else _ZERO,
            scheduled=capped_count(row["scheduled"], _MAX_COUNT),
            running=capped_count(row["running"], _MAX_COUNT),
            oldest_waiting_at=share.oldest_waiting_at if share else None,
            minutes=minutes.get(row["queue"], _NO_ACTIVITY),
        )
        for row in rows
        if row["queue"] != DEAD_LETTER_QUEUE
    )


def _minutes_by_queue(minutes: Iterable[QueueMinute], now: datetime) -> dict[str, tuple[QueueActivity, ...]]:
    """Return the activity of each queue in the last 60 minutes, the current one last."""
    last = now.replace(second=0, microsecond=0)
    by_queue: dict[str, list[QueueActivity]] = {}
    for one in minutes:
        index = MINUTES - 1 - (last - one.minute) // MINUTE
        if 0 <= index < MINUTES:
            by_queue.setdefault(one.queue, list(_NO_ACTIVITY))[index] = one.done
    return {queue: tuple(activity) for queue, activity in by_queue.items()}


def _active_freshness(active: Count, stale: Count) -> dict[FreshnessLabel, Count]:
    return {
        FreshnessLabel.FRESH_ACTIVE: _minus(active, stale.count),
        FreshnessLabel.LIKELY_STALE: stale,
    }


def _minus(count: Count, part: int) -> Count:
    return Count(count=max(0, count.count - part), at_least=count.at_least)


def _by_severity(open_alerts: Iterable[Alert]) -> tuple[Alert, ...]:
    """Sort alerts: critical ones first, then the latest first."""
    return tuple(
        sorted(
            open_alerts,
            key=lambda alert: (alert.severity is not Severity.CRITICAL, -alert.fired_at.timestamp()),
        )
    )
