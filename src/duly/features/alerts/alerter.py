"""The alerter: measures the installation, fires and resolves alerts, and notifies the operators.

One alerter runs at a time. A round is one transaction: an alert and its notifications are written together or
not at all. A dead letter gets its alert in the next round, whichever process wrote it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from duly.core.freshness import Freshness
from duly.core.job import SYSTEM_ORG
from duly.db.database import retry_transaction
from duly.db.pool import Connection
from duly.features.alerts import store
from duly.features.alerts.models import Alert, AlertKind, Severity
from duly.features.alerts.store import AlertScanCursor
from duly.features.alerts.thresholds import Measurements, QueueMeasurement, Thresholds, find_firing
from duly.features.metrics.service import read_totals
from duly.features.notifications.service import NewNotification, add_notifications
from duly.features.queues import service as queues
from duly.jobs import stale_jobs
from duly.jobs.application import App
from duly.observability import metrics

log = logging.getLogger("duly.maintenance")
_INTERVAL = timedelta(seconds=15)
_MAX_DEAD_LETTERS, _MAX_QUEUE_HEADS, _MAX_COUNT = 500, 200, 10_000
_CREATED_BY = "system:duly"
_PAYLOAD_FIELDS = (
    *("kind", "target", "severity", "summary", "measured", "threshold"),
    *("fired_at", "resolved_at", "detail"),
)


class AlertRecipients(NamedTuple):
    """The recipients of alerts of the installation, each a channel and an address; and their language."""

    recipients: tuple[tuple[str, str], ...] = ()
    locale: str = "en"


class AlertRound(NamedTuple):
    """The result of one round."""

    dead_letters: int
    fired: list[Alert]
    resolved: list[Alert]


class Alerter:
    """The chore that fires and resolves alerts."""

    name = "alerter"

    def __init__(
        self,
        app: App,
        thresholds: Thresholds,
        recipients: AlertRecipients | None = None,
        *,
        grace: timedelta = timedelta(minutes=1),
        quiet_for: timedelta = timedelta(minutes=1),
    ) -> None:
        self._app = app
        self._thresholds = thresholds
        self._recipients = recipients or AlertRecipients()
        self._cursor = AlertScanCursor()
        self._grace = grace
        """How long the reconciler may take to repair a stale job."""
        self._quiet_for = quiet_for
        """How long a condition must not fire to be resolved: a flapping one is notified once."""

    async def once(self) -> timedelta:
        """Run one round; return zero if there are more dead letters than one round takes."""
        done = await retry_transaction(self._round)
        if done is None:
            return _INTERVAL
        _report(done)
        return timedelta(0) if done.dead_letters == _MAX_DEAD_LETTERS else _INTERVAL

    async def _round(self) -> AlertRound | None:
        async with (await self._app.resources()).database.engine() as conn:
            if not await store.try_lock(conn):
                return None
            dead_letters = await store.fire_dead_letters(conn, limit=_MAX_DEAD_LETTERS)
            self._cursor = await store.resolve_dead_letters(conn, self._cursor, limit=_MAX_DEAD_LETTERS)
            fired = await store.fire(conn, find_firing(await self._measure(conn), self._thresholds))
            resolved = await store.resolve(conn, self._quiet_for)
            await self._notify(conn)
            return AlertRound(dead_letters, fired, resolved)

    async def _measure(self, conn: Connection) -> Measurements:
        stats = await queues.read_stats(conn, max_count=_MAX_COUNT, max_heads=_MAX_QUEUE_HEADS)
        presence = await store.read_worker_presence(conn)
        totals = await read_totals(conn, limit=1)
        return Measurements(
            queues=tuple(
                QueueMeasurement(
                    queue=queue.queue,
                    waiting=queue.waiting.count,
                    oldest_age=queue.oldest_waiting_age,
                    paused=queue.paused_at is not None,
                    alert_depth=queue.alert_depth,
                    alert_wait=queue.alert_wait,
                )
                for queue in stats
            ),
            dead=await store.count_dead(conn),
            workers=presence.workers,
            silence=presence.silence,
            stale=await self._count_stale(conn),
            relay_lag=timedelta(seconds=totals.relay_lag),
            endpoints=await store.list_failing_endpoints(conn),
        )

    async def _count_stale(self, conn: Connection) -> int:
        """Count the jobs that were stale a grace period ago, and still are."""
        jobs, _ = await stale_jobs.find_stale(conn, [job.policy.lifecycle for job in self._app.registry])
        evidence = await stale_jobs.read_evidence(conn, jobs) if jobs else []
        earlier = (replace(job, read_at=job.read_at - self._grace) for job in evidence)
        return sum(job.assess().state is Freshness.LIKELY_STALE for job in earlier)

    async def _notify(self, conn: Connection) -> None:
        """Notify the recipients of alerts of the installation, once on firing and once on resolving."""
        alerts = await store.list_unnotified(conn, SYSTEM_ORG)
        if not alerts:
            return
        await add_notifications(conn, [new for alert in alerts for new in self._notifications(alert)])
        await store.mark_notified(conn, SYSTEM_ORG, [alert["alert_id"] for alert in alerts])

    def _notifications(self, alert: dict[str, Any]) -> Iterable[NewNotification]:
        keys = [] if alert["told_at"] else ["alert.firing"]
        keys += ["alert.resolved"] if alert["resolved_at"] else []
        payload = {name: alert[name] for name in _PAYLOAD_FIELDS} | {"alert_id": str(alert["alert_id"])}
        payload |= {name: alert[name] and alert[name].isoformat() for name in ("fired_at", "resolved_at")}
        for key in keys:
            for channel, recipient in self._recipients.recipients:
                yield NewNotification(
                    SYSTEM_ORG, channel, recipient, key, payload, _CREATED_BY, self._recipients.locale,
                    bucket=str(alert["alert_id"]),
                )  # fmt: skip


def _report(done: AlertRound) -> None:
    """Log and count the alerts that fired, and those that were resolved."""
    if done.dead_letters:
        metrics.count_alerts(AlertKind.DEAD_LETTER, "fired", done.dead_letters)
    for alert in done.fired:
        level = logging.ERROR if alert.severity is Severity.CRITICAL else logging.WARNING
        log.log(level, "alert fired: %s of %s: %s", alert.kind, alert.target, alert.summary)
        metrics.count_alerts(alert.kind, "fired")
    for alert in done.resolved:
        log.info("alert resolved: %s of %s: %s", alert.kind, alert.target, alert.summary)
        metrics.count_alerts(alert.kind, "resolved")
