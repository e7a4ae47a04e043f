"""The database's figures for Prometheus: asked when somebody looks, and at most every few seconds.

Every process that is asked tells the same, since they are the database's and not its own: take the `max`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import psycopg
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from duly.core.errors import DulyError
from duly.core.freshness import Freshness
from duly.core.policy import DEAD_LETTER_QUEUE
from duly.db.pool import Connection
from duly.features.metrics import store as figures
from duly.features.metrics.store import Beside
from duly.features.overview.service import Overview
from duly.features.queues import store as queues
from duly.features.queues.store import QueueStats
from duly.jobs import stale_jobs
from duly.jobs.application import App
from duly.observability.metrics import alert_kinds

log = logging.getLogger("duly.metrics")
MOST = 100_000
"""No count goes further than this."""
_HEADS = 200
_QUEUES = 100


class Figure(NamedTuple):
    """A number that is asked for, as Prometheus knows it."""

    name: str
    help: str
    labels: tuple[str, ...] = ()

    def family(self, values: Iterable[tuple[Sequence[str], float]]) -> GaugeMetricFamily:
        """With what it is now."""
        made = GaugeMetricFamily(self.name, self.help, labels=self.labels)
        for labels, value in values:
            made.add_metric(labels, value)
        return made


UP = Figure("duly_database_up", "1 if the database has answered the questions below, else 0.")
DEPTH = Figure("duly_queue_depth", "Jobs that could start now; up to 100,000.", ("queue",))
OLDEST = Figure(
    "duly_queue_oldest_age_seconds", "How long the oldest job that could start has waited.", ("queue",)
)
SCHEDULED = Figure(
    "duly_queue_scheduled", "Jobs whose time has not come, retries among them; up to 100,000.", ("queue",)
)
RUNNING = Figure("duly_queue_running", "Jobs that workers hold; up to 100,000.", ("queue",))
PAUSED = Figure("duly_queue_paused", "1 if nothing is started from it.", ("queue",))
FRESHNESS = Figure(
    "duly_jobs_freshness", "Active jobs by what the evidence says: fresh, likely_stale, unknown.", ("state",)
)
LETTERS = Figure("duly_dead_letters_open", "Dead letters about which nothing was done yet; up to 100,000.")
WORKERS = Figure("duly_workers_alive", "Workers whose lease is not over.")
SLOTS = Figure("duly_worker_slots", "Jobs that these can hold at a time.")
RELAY_LAG = Figure("duly_relay_lag_seconds", "Age of the oldest event that was not relayed yet.")
AUDIT_LAG = Figure("duly_audit_lag_seconds", "Age of the oldest audit entry that was not sealed yet.")
ALERTS = Figure("duly_alerts_open", "Alerts that are not over; up to 100,000.", ("kind",))
WEBHOOKS = Figure(
    "duly_webhooks_pending", "Webhook messages to be delivered, of each job the next; up to 100,000."
)
NOTIFICATIONS = Figure("duly_notifications_pending", "Notifications still to be told; up to 100,000.")
ALL = (
    UP, DEPTH, OLDEST, SCHEDULED, RUNNING, PAUSED, FRESHNESS, LETTERS, WORKERS, SLOTS, RELAY_LAG, AUDIT_LAG,
    ALERTS, WEBHOOKS, NOTIFICATIONS,
)  # fmt: skip


class Figures(Collector):
    """Ask with `refresh`, then collect: a scrape waits for no database and fails with none."""

    def __init__(self, app: App, *, every: float = 5.0, patience: float = 3.0) -> None:
        self._app = app
        self._overview = Overview(app)
        self._every = every
        self._patience = patience
        self._asking = asyncio.Lock()
        self._asked_at = float("-inf")
        self._known: list[Metric] = [UP.family([((), 0.0)])]

    def collect(self) -> list[Metric]:
        """What was found last; if that was nothing, that the database is away."""
        return self._known

    async def refresh(self) -> None:
        """Ask the database, if that was not just done. Whoever comes meanwhile waits for the same answer."""
        async with self._asking:
            if time.monotonic() < self._asked_at + self._every:
                return
            try:
                async with asyncio.timeout(self._patience):
                    self._known = [UP.family([((), 1.0)]), *await self._ask()]
            except (DulyError, psycopg.Error, OSError, TimeoutError) as error:
                log.warning("the figures of the database are not known: %s %s", type(error).__name__, error)
                self._known = [UP.family([((), 0.0)])]
            self._asked_at = time.monotonic()

    async def _ask(self) -> list[Metric]:
        async with (await self._app.resources()).database.engine() as conn:
            found = await queues.list_stats(conn, most=MOST, heads=_HEADS)
            stats = [one for one in found if one.queue != DEAD_LETTER_QUEUE][:_QUEUES]
            beside = await figures.beside(conn, most=MOST)
            doubts = await self._doubts(conn)
        return [*_of_queues(stats), _freshness(stats, doubts), *_beside(beside)]

    async def _doubts(self, conn: Connection) -> Counter[Freshness]:
        """Of the jobs that look suspicious, how many are what; bounded as for the overview."""
        found, _ = await self._overview.suspicious(conn)
        judged = await stale_jobs.read_evidence(conn, found) if found else []
        return Counter(one.assess().state for one in judged)


def _of_queues(stats: Sequence[QueueStats]) -> Iterator[Metric]:
    named = [((one.queue,), one) for one in stats]
    yield DEPTH.family((name, one.waiting.count) for name, one in named)
    yield SCHEDULED.family((name, one.scheduled.count) for name, one in named)
    yield RUNNING.family((name, one.running.count) for name, one in named)
    yield PAUSED.family((name, float(one.paused_at is not None)) for name, one in named)
    ages = ((name, one.oldest_waiting_age) for name, one in named)
    yield OLDEST.family((name, age.total_seconds() if age else 0.0) for name, age in ages)


def _freshness(stats: Sequence[QueueStats], doubts: Counter[Freshness]) -> Metric:
    active = sum(one.waiting.count + one.scheduled.count + one.running.count for one in stats)
    stale, unknown = doubts[Freshness.LIKELY_STALE], doubts[Freshness.UNKNOWN]
    states = {"fresh": max(0, active - stale - unknown), "likely_stale": stale, "unknown": unknown}
    return FRESHNESS.family(((state,), n) for state, n in states.items())


def _beside(found: Beside) -> Iterator[Metric]:
    plain = {
        WORKERS: found.workers,
        SLOTS: found.slots,
        LETTERS: found.dead_letters,
        WEBHOOKS: found.webhooks,
        NOTIFICATIONS: found.notifications,
        RELAY_LAG: found.relay_lag,
        AUDIT_LAG: found.audit_lag,
    }
    yield from (figure.family([((), float(value))]) for figure, value in plain.items())
    kinds: Counter[str] = Counter()
    for kind, n in found.alerts.items():
        kinds[alert_kinds(kind)] += n
    yield ALERTS.family(((kind,), n) for kind, n in kinds.items())
