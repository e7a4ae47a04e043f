"""Making boards: few statements, each bounded, and the slow ones not every time."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from duly.core.freshness import FreshnessLabel
from duly.core.policy import DEAD_LETTER_QUEUE
from duly.core.states import Status
from duly.db import server
from duly.db.pool import Connection
from duly.db.rows import PREFER_INDEX_ORDER
from duly.db.server import ServerStats
from duly.features.alerts import store as alerts
from duly.features.alerts.models import Alert
from duly.features.dead_letters import store as dead_letters
from duly.features.dead_letters.models import FailureGroup
from duly.features.metrics.store import Totals, read_totals
from duly.features.overview import models as board
from duly.features.overview import store as overview
from duly.features.overview.models import HOUR, MINUTES, Board, Platform, QueueLine
from duly.features.overview.store import OrgOverview, PlatformOverview
from duly.features.pagination import Count, capped_count
from duly.features.queues import store as queues
from duly.features.queues.models import QueueStats, WorkerSnapshot
from duly.features.ttl_cache import TtlCache
from duly.jobs.application import App
from duly.worker import queue_stats as minutes
from duly.worker.queue_stats import OrgMinutes, QueueActivity, QueueMinute

_MOST = 10_000
_DAY = timedelta(days=1)
_ALERTS, _KINDS, _LETTERS, _WORKERS, _ENDED = 50, 20, 1_000, 200, 1_000
_SERVER_LASTS, _MINUTES_LAST = 15.0, 4.0
"""Seconds. Workers write every five what they did."""
_RECENT, _ALL_AGAIN = timedelta(minutes=3), 120.0
_NONE = Count(count=0, at_least=False)
_QUIET = (QueueActivity(),) * MINUTES


class Told(NamedTuple):
    """What the engine tells of the installation beside its overview."""

    beside: Totals
    alerts: list[Alert]
    kinds: list[FailureGroup]
    workers: list[WorkerSnapshot]
    reconciled: int


class Boards:
    """Puts together what others count."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._server = TtlCache(self._look_at_server, _SERVER_LASTS)
        self._minutes = TtlCache(self._latest, _MINUTES_LAST)
        self._over: list[QueueMinute] = []
        self._all_read_at = float("-inf")

    async def read(self, conn: Connection) -> Told:
        """What there is beside the overview of the installation."""
        return Told(
            beside=await read_totals(conn, limit=_MOST),
            alerts=await alerts.list_open(conn, None, limit=_ALERTS),
            kinds=await dead_letters.list_failure_groups(conn, None, limit=_KINDS, max_count=_LETTERS),
            workers=await queues.list_workers(conn, limit=_WORKERS),
            reconciled=await overview.reconciled(conn, most=_MOST, since=_DAY),
        )

    async def of_platform(self, seen: PlatformOverview, told: Told) -> Board:
        """The whole installation."""
        done = board.by_queue(await self._minutes.get(), seen.looked_at)
        stats = [one for one in seen.queues if one.queue != DEAD_LETTER_QUEUE]
        lines = tuple(_line(one, done.get(one.queue, _QUIET)) for one in stats)
        waiting, scheduled, running = (
            board.all_of(getattr(one, name) for one in stats) for name in ("waiting", "scheduled", "running")
        )
        return Board(
            org_id=None,
            looked_at=seen.looked_at,
            queues=lines,
            since=seen.looked_at - HOUR,
            waiting=waiting,
            scheduled=scheduled,
            running=running,
            failed=seen.failed,
            dead_letters=capped_count(told.beside.dead_letters, _MOST),
            bands={
                **_active(board.all_of([waiting, scheduled, running]), seen.suspects),
                FreshnessLabel.RECONCILED_FAILED: capped_count(told.reconciled, _MOST),
            },
            alerts=board.worst_first(told.alerts),
            kinds=tuple(told.kinds),
            workers=seen.workers,
            slots=seen.slots,
            platform=Platform(tuple(told.workers), await self._server.get(), told.beside),
        )

    async def of_org(self, seen: OrgOverview, rows: list[dict[str, Any]]) -> Board:
        """What one org may see; `rows` is what it has in each queue."""
        whose = seen.org_id
        async with self._app.tenant_session(whose) as conn:
            await conn.execute(PREFER_INDEX_ORDER)
            ended = await minutes.list_ended(conn, whose, HOUR, limit=_ENDED)
            wrong = await alerts.list_open(conn, whose, limit=_ALERTS)
            errors = await dead_letters.list_failure_groups(conn, whose, limit=_KINDS, max_count=_LETTERS)
        running = board.all_of([seen.running, seen.partial])
        waiting = board.all_of(share.waiting for share in seen.waiting)
        forced = rows[0]["reconciled"] if rows else 0
        over = board.all_of(seen.ended.values())
        normal = Count(count=max(0, over.count - forced), at_least=over.at_least)
        return Board(
            org_id=whose,
            looked_at=seen.looked_at,
            queues=_lines(seen, rows, ended),
            since=ended.since or seen.looked_at - HOUR,
            waiting=waiting,
            scheduled=seen.scheduled,
            running=running,
            failed=seen.ended[Status.FAILED],
            dead_letters=seen.dead_letters,
            bands={
                **_active(board.all_of([waiting, seen.scheduled, running]), seen.suspects),
                FreshnessLabel.RECONCILED_FAILED: capped_count(forced, _MOST),
                FreshnessLabel.TERMINAL_NORMAL: normal,
            },
            alerts=board.worst_first(wrong),
            kinds=tuple(errors),
            workers=seen.workers,
            slots=seen.slots,
            platform=None,
        )

    async def _look_at_server(self) -> ServerStats:
        async with (await self._app.resources()).database.login() as conn:
            return await server.read_server_stats(conn)

    async def _latest(self) -> list[QueueMinute]:
        """The last hour. Minutes that are over seldom change: they are read again now and then."""
        now = time.monotonic()
        everything = now > self._all_read_at + _ALL_AGAIN
        async with (await self._app.resources()).database.engine() as conn:
            found = await minutes.list_minutes(conn, HOUR if everything else _RECENT)
        if everything:
            self._all_read_at = now
        else:
            first = found[0].minute if found else datetime.max.replace(tzinfo=UTC)
            found = [*(one for one in self._over if one.minute < first), *found]
        self._over = found
        return found


def _active(active: Count, stale: Count) -> dict[FreshnessLabel, Count]:
    fresh = Count(count=max(0, active.count - stale.count), at_least=active.at_least)
    return {FreshnessLabel.FRESH_ACTIVE: fresh, FreshnessLabel.LIKELY_STALE: stale}


def _line(one: QueueStats, done: tuple[QueueActivity, ...]) -> QueueLine:
    return QueueLine(
        queue=one.queue,
        paused_at=one.paused_at,
        pause_reason=one.pause_reason,
        waiting=one.waiting,
        scheduled=one.scheduled,
        running=one.running,
        oldest_waiting_at=one.oldest_waiting_at,
        oldest_waiting_age=one.oldest_waiting_age,
        minutes=done,
        hour=board.together(done),
    )


def _lines(seen: OrgOverview, rows: list[dict[str, Any]], ended: OrgMinutes) -> tuple[QueueLine, ...]:
    """The queues in which an org has something, or had within the hour."""
    shares = {share.queue: share for share in seen.waiting}
    done = board.by_queue(ended.minutes, seen.looked_at)
    lines = []
    for row in rows:
        queue = row["queue"]
        share, minutes_of_it = shares.get(queue), done.get(queue, _QUIET)
        since = share.oldest_waiting_at if share else None
        line = QueueLine(
            queue=queue,
            paused_at=row["paused_at"],
            pause_reason=None,
            waiting=share.waiting if share else _NONE,
            scheduled=capped_count(row["scheduled"], _MOST),
            running=capped_count(row["running"], _MOST),
            oldest_waiting_at=since,
            oldest_waiting_age=seen.looked_at - since if since else None,
            minutes=minutes_of_it,
            hour=board.together(minutes_of_it),
        )
        lines.append(line)
    return tuple(line for line in lines if line.queue != DEAD_LETTER_QUEUE)
