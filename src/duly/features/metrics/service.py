"""Metrics of the database for Prometheus, queried on a scrape and at most every few seconds.

They describe the database, not the process: every process reports the same values. Aggregate them with `max`.
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
from duly.features.metrics.store import InstallationTotals, read_totals
from duly.features.queues import service as queues
from duly.features.queues.models import QueueStats
from duly.jobs import stale_jobs
from duly.jobs.application import App
from duly.observability.metrics import alert_kinds

__all__ = ["DatabaseGauge", "DatabaseMetrics", "InstallationTotals", "read_totals"]

log = logging.getLogger("duly.metrics")
MAX_COUNT = 100_000
"""Counts end here."""
_MAX_QUEUE_HEADS = 200
_MAX_QUEUES = 100


class DatabaseGauge(NamedTuple):
    """A gauge whose value is queried: its name, help and labels."""

    name: str
    help: str
    labels: tuple[str, ...] = ()

    def family(self, values: Iterable[tuple[Sequence[str], float]]) -> GaugeMetricFamily:
        """Return the gauge with its current values."""
        family = GaugeMetricFamily(self.name, self.help, labels=self.labels)
        for labels, value in values:
            family.add_metric(labels, value)
        return family

    def single(self, value: float) -> GaugeMetricFamily:
        """Return a gauge without labels."""
        return self.family([((), float(value))])


UP = DatabaseGauge("duly_database_up", "1 if the database answered the queries of this scrape, else 0.")
DEPTH = DatabaseGauge("duly_queue_depth", "Runnable jobs; up to 100,000.", ("queue",))
OLDEST = DatabaseGauge(
    "duly_queue_oldest_age_seconds", "How long the oldest runnable job has been waiting.", ("queue",)
)
SCHEDULED = DatabaseGauge(
    "duly_queue_scheduled", "Jobs scheduled for later, including retries; up to 100,000.", ("queue",)
)
RUNNING = DatabaseGauge("duly_queue_running", "Jobs that workers have claimed; up to 100,000.", ("queue",))
PAUSED = DatabaseGauge("duly_queue_paused", "1 if the queue is paused.", ("queue",))
FRESHNESS = DatabaseGauge(
    "duly_jobs_freshness", "Active jobs by freshness: fresh, likely_stale, unknown.", ("state",)
)
DEAD_LETTERS = DatabaseGauge("duly_dead_letters_open", "Open dead letters; up to 100,000.")
WORKERS = DatabaseGauge("duly_workers_alive", "Workers with a valid lease.")
SLOTS = DatabaseGauge("duly_worker_slots", "Jobs that these workers can run at a time.")
RELAY_LAG = DatabaseGauge("duly_relay_lag_seconds", "Age of the oldest event that is not relayed yet.")
AUDIT_LAG = DatabaseGauge("duly_audit_lag_seconds", "Age of the oldest audit entry that is not sealed yet.")
ALERTS = DatabaseGauge("duly_alerts_open", "Open alerts; up to 100,000.", ("kind",))
WEBHOOKS = DatabaseGauge(
    "duly_webhooks_pending", "Pending webhook deliveries, only the next of each job; up to 100,000."
)
NOTIFICATIONS = DatabaseGauge("duly_notifications_pending", "Pending notifications; up to 100,000.")
ALL = (
    UP, DEPTH, OLDEST, SCHEDULED, RUNNING, PAUSED, FRESHNESS, DEAD_LETTERS, WORKERS, SLOTS, RELAY_LAG,
    AUDIT_LAG, ALERTS, WEBHOOKS, NOTIFICATIONS,
)  # fmt: skip


class DatabaseMetrics(Collector):
    """A collector that serves cached values: `refresh` queries them, `collect` never touches the database."""

    def __init__(self, app: App, *, every: float = 5.0, timeout: float = 3.0) -> None:
        self._app = app
        self._every = every
        self._timeout = timeout
        self._refreshing = asyncio.Lock()
        self._refreshed_at = float("-inf")
        self._metrics: list[Metric] = [UP.single(0)]

    def collect(self) -> list[Metric]:
        """Return the metrics of the last refresh; only `duly_database_up` 0 if it failed."""
        return self._metrics

    async def refresh(self) -> None:
        """Query the metrics unless that was just done. Concurrent callers share one query."""
        async with self._refreshing:
            if time.monotonic() < self._refreshed_at + self._every:
                return
            try:
                async with asyncio.timeout(self._timeout):
                    self._metrics = [UP.single(1), *await self._query()]
            except (DulyError, psycopg.Error, OSError, TimeoutError) as error:
                log.warning("could not query database metrics: %s %s", type(error).__name__, error)
                self._metrics = [UP.single(0)]
            self._refreshed_at = time.monotonic()

    async def _query(self) -> list[Metric]:
        async with (await self._app.resources()).database.engine() as conn:
            all_queues = await queues.read_stats(conn, max_count=MAX_COUNT, max_heads=_MAX_QUEUE_HEADS)
            stats = [queue for queue in all_queues if queue.queue != DEAD_LETTER_QUEUE][:_MAX_QUEUES]
            totals = await read_totals(conn, limit=MAX_COUNT)
            doubtful = await self._doubtful(conn)
        return [*_queue_metrics(stats), _freshness(stats, doubtful), *_total_metrics(totals)]

    async def _doubtful(self, conn: Connection) -> Counter[Freshness]:
        """Count the jobs that may be stale by their freshness."""
        jobs, _ = await stale_jobs.find_stale(conn, [job.policy.lifecycle for job in self._app.registry])
        evidence = await stale_jobs.read_evidence(conn, jobs) if jobs else []
        return Counter(job.assess().state for job in evidence)


def _queue_metrics(stats: Sequence[QueueStats]) -> Iterator[Metric]:
    labeled = [((queue.queue,), queue) for queue in stats]
    yield DEPTH.family((label, queue.waiting.count) for label, queue in labeled)
    yield SCHEDULED.family((label, queue.scheduled.count) for label, queue in labeled)
    yield RUNNING.family((label, queue.running.count) for label, queue in labeled)
    yield PAUSED.family((label, float(queue.paused_at is not None)) for label, queue in labeled)
    ages = ((label, queue.oldest_waiting_age) for label, queue in labeled)
    yield OLDEST.family((label, age.total_seconds() if age else 0.0) for label, age in ages)


def _freshness(stats: Sequence[QueueStats], doubtful: Counter[Freshness]) -> Metric:
    active = sum(queue.waiting.count + queue.scheduled.count + queue.running.count for queue in stats)
    stale, unknown = doubtful[Freshness.LIKELY_STALE], doubtful[Freshness.UNKNOWN]
    states = {"fresh": max(0, active - stale - unknown), "likely_stale": stale, "unknown": unknown}
    return FRESHNESS.family(((state,), count) for state, count in states.items())


def _total_metrics(totals: InstallationTotals) -> Iterator[Metric]:
    yield WORKERS.single(totals.workers)
    yield SLOTS.single(totals.slots)
    yield DEAD_LETTERS.single(totals.dead_letters)
    yield WEBHOOKS.single(totals.webhooks)
    yield NOTIFICATIONS.single(totals.notifications)
    yield RELAY_LAG.single(totals.relay_lag)
    yield AUDIT_LAG.single(totals.audit_lag)
    by_kind: Counter[str] = Counter()
    for kind, count in totals.alerts.items():
        by_kind[alert_kinds(kind)] += count
    yield ALERTS.family(((kind,), count) for kind, count in by_kind.items())
