"""Alerts: what is wrong is found, noted once, told once, and once more when it is over.

One looks at a time. All of a round is one transaction: an alert, and the notifications that tell of it, are
there together or not at all. A dead letter has its alert by the next round, whoever wrote it.
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
from duly.features.alerts import store as alerts
from duly.features.alerts.rules import Figures, Kind, QueueFigures, Severity, Thresholds, firing
from duly.features.alerts.store import Alert, Looked
from duly.features.metrics import store as figures
from duly.features.notifications import store as notifications
from duly.features.notifications.store import NewNotification
from duly.features.queues import store as queues
from duly.jobs import stale_jobs
from duly.jobs.application import App
from duly.observability import metrics

log = logging.getLogger("duly.maintenance")
_EVERY = timedelta(seconds=15)
_LETTERS, _HEADS, _MOST = 500, 200, 10_000
_BY = "system:duly"
_FACTS = (
    "kind",
    "target",
    "severity",
    "summary",
    "measured",
    "threshold",
    "fired_at",
    "resolved_at",
    "detail",
)


class Recipients(NamedTuple):
    """Whom to tell of what concerns the installation, each by a channel; and in which language."""

    people: tuple[tuple[str, str], ...] = ()
    locale: str = "en"


class Round(NamedTuple):
    """What one look came to."""

    letters: int
    begun: list[Alert]
    over: list[Alert]


class Alerter:
    """The chore that looks for what somebody should look at."""

    name = "alerter"

    def __init__(
        self,
        app: App,
        limits: Thresholds,
        recipients: Recipients | None = None,
        *,
        grace: timedelta = timedelta(minutes=1),
        calm: timedelta = timedelta(minutes=1),
    ) -> None:
        self._app = app
        self._limits = limits
        self._recipients = recipients or Recipients()
        self._looked = Looked()
        self._grace = grace
        """How long the reconciler has for what cannot be believed."""
        self._calm = calm
        """How long something must not be seen to be over: what comes and goes is told once."""

    async def once(self) -> timedelta:
        """Look once; zero if there are more dead letters than one round takes."""
        done = await retry_transaction(self._round)
        if done is None:
            return _EVERY
        _say(done)
        return timedelta(0) if done.letters == _LETTERS else _EVERY

    async def _round(self) -> Round | None:
        async with (await self._app.resources()).database.engine() as conn:
            if not await alerts.take_turn(conn):
                return None
            letters = await alerts.add_letters(conn, limit=_LETTERS)
            self._looked = await alerts.end_letters(conn, self._looked, limit=_LETTERS)
            begun = await alerts.fire(conn, firing(await self.figures(conn), self._limits))
            over = await alerts.resolve(conn, self._calm)
            await self._tell(conn)
            return Round(letters, begun, over)

    async def figures(self, conn: Connection) -> Figures:
        """What there is now."""
        stats = await queues.list_stats(conn, most=_MOST, heads=_HEADS)
        presence = await alerts.presence(conn)
        beside = await figures.beside(conn, most=1)
        return Figures(
            queues=tuple(
                QueueFigures(
                    one.queue,
                    one.waiting.count,
                    one.oldest_waiting_age,
                    one.paused_at is not None,
                    one.alert_depth,
                    one.alert_wait,
                )
                for one in stats
            ),
            dead=await alerts.dead(conn),
            workers=presence.workers,
            silence=presence.silence,
            stale=await self._stale(conn),
            relay_lag=timedelta(seconds=beside.relay_lag),
            endpoints=await alerts.failing_endpoints(conn),
        )

    async def _stale(self, conn: Connection) -> int:
        """Jobs that could not be believed already when the reconciler should have come, and still cannot."""
        found, _ = await stale_jobs.find_stale(conn, [job.policy.lifecycle for job in self._app.registry])
        judged = await stale_jobs.read_evidence(conn, found) if found else []
        earlier = (replace(one, read_at=one.read_at - self._grace) for one in judged)
        return sum(one.assess().state is Freshness.LIKELY_STALE for one in earlier)

    async def _tell(self, conn: Connection) -> None:
        """What concerns the installation is told to those who look after it, once at each end."""
        found = await alerts.to_tell(conn, SYSTEM_ORG)
        if not found:
            return
        await notifications.add(conn, [one for row in found for one in self._told(row)])
        await alerts.told(conn, SYSTEM_ORG, [row["alert_id"] for row in found])

    def _told(self, row: dict[str, Any]) -> Iterable[NewNotification]:
        keys = [] if row["told_at"] else ["alert.firing"]
        keys += ["alert.resolved"] if row["resolved_at"] else []
        facts = {name: row[name] for name in _FACTS} | {"alert_id": str(row["alert_id"])}
        facts |= {name: facts[name] and facts[name].isoformat() for name in ("fired_at", "resolved_at")}
        for key in keys:
            for channel, recipient in self._recipients.people:
                yield NewNotification(
                    SYSTEM_ORG, channel, recipient, key, facts, _BY, self._recipients.locale,
                    bucket=str(row["alert_id"]),
                )  # fmt: skip


def _say(done: Round) -> None:
    """One line for each that begins, and for each that is over."""
    if done.letters:
        metrics.alerted(Kind.DEAD_LETTER, "fired", done.letters)
    for alert in done.begun:
        level = logging.ERROR if alert.severity is Severity.CRITICAL else logging.WARNING
        log.log(level, "alert %s of %s: %s", alert.kind, alert.target, alert.summary)
        metrics.alerted(alert.kind, "fired")
    for alert in done.over:
        log.info("alert %s of %s is over; it was: %s", alert.kind, alert.target, alert.summary)
        metrics.alerted(alert.kind, "resolved")
