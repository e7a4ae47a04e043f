"""What is wrong, the worst first, each with the way to its cause."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from duly.console.visit import Visit
from duly.core.freshness import FreshnessLabel
from duly.core.job import SYSTEM_ORG
from duly.features.alerts.models import AlertKind, Severity
from duly.features.overview.models import HOUR, Alert, Board, Platform, WorkerState

BAD, WARN, CALM = "bad", "warn", "calm"
_ORDER = (BAD, WARN, CALM)
_CROWDED = 0.85
_LONG_OPEN, _LATE = timedelta(minutes=10), timedelta(minutes=5)
_SPANS = (AlertKind.OLDEST_AGE, AlertKind.NO_WORKER, AlertKind.RELAY_LAG)
"""Alerts that measure seconds."""


class Trouble(NamedTuple):
    """One thing to look at."""

    id: str
    level: str
    text: str
    href: str | None
    since: datetime | None = None


def troubles(visit: Visit, board: Board) -> list[Trouble]:
    """Everything that is wrong by the board."""
    found = [
        *(_alert(visit, alert) for alert in board.alerts),
        *_work(visit, board),
        *(_platform(visit, board, board.platform) if board.platform else ()),
    ]
    return sorted(found, key=lambda one: _ORDER.index(one.level))


def _alert(visit: Visit, alert: Alert) -> Trouble:
    level = BAD if alert.severity is Severity.CRITICAL else WARN
    measured, threshold = (_said(visit, alert.kind, value) for value in (alert.measured, alert.threshold))
    host = alert.detail.get("host", alert.target)
    said = visit.t(f"overview.alert.{alert.kind}", n=measured, max=threshold, target=alert.target, host=host)
    return Trouble(f"alert-{alert.alert_id}", level, said, _cause(visit, alert), alert.fired_at)


def _said(visit: Visit, kind: AlertKind, value: float | None) -> str:
    if value is None:
        return "?"
    return lasting(visit, value) if kind in _SPANS else f"{round(value, 1):g}"


def _cause(visit: Visit, alert: Alert) -> str | None:
    whose = {} if alert.org_id in (SYSTEM_ORG, visit.org_id) else {"org": alert.org_id}
    match alert.kind:
        case AlertKind.QUEUE_DEPTH | AlertKind.OLDEST_AGE:
            return visit.link("/jobs", status="queued", queue=alert.target)
        case AlertKind.DEAD_RATE | AlertKind.DEAD_LETTER:
            return visit.link("/dead", **whose)
        case AlertKind.STALE_RUNS:
            return visit.link("/jobs", freshness="likely_stale")
        case AlertKind.WEBHOOK_FAILING:
            return visit.link("/webhooks", **whose)
        case AlertKind.NO_WORKER:
            return visit.link("/workers") if visit.platform else None
        case AlertKind.RELAY_LAG:
            return None


def _work(visit: Visit, board: Board) -> Iterator[Trouble]:
    told = {alert.kind for alert in board.alerts}
    if not board.workers and board.waiting.count and AlertKind.NO_WORKER not in told:
        to = visit.link("/workers") if visit.platform else None
        yield Trouble("no-worker", BAD, visit.t("overview.problem.no_worker"), to)
    fresh = [kind for kind in board.kinds if kind.last_dead_at > board.looked_at - HOUR]
    if fresh:
        said = visit.t("overview.problem.dead_letters", n=len(fresh))
        yield Trouble("dying", WARN, said, visit.link("/dead"), max(kind.last_dead_at for kind in fresh))
    stale = board.bands[FreshnessLabel.LIKELY_STALE]
    if stale.count and AlertKind.STALE_RUNS not in told:
        said = visit.t("overview.problem.stale", n=stale)
        yield Trouble("stale", WARN, said, visit.link("/jobs", freshness="likely_stale"))
    for line in board.queues:
        if line.paused_at:
            level = WARN if line.waiting.count else CALM
            said = visit.t("overview.problem.paused", queue=line.queue, n=line.waiting)
            yield Trouble(f"paused-{line.queue}", level, said, f"#queue-{line.queue}", line.paused_at)


def _platform(visit: Visit, board: Board, platform: Platform) -> Iterator[Trouble]:
    since = board.looked_at - HOUR
    for state, level in ((WorkerState.SILENT, WARN), (WorkerState.LOST, WARN)):
        some = [w for w in platform.workers if w.state is state and w.heartbeat_at > since]
        if some:
            said = visit.t(f"overview.problem.{state}", n=len(some), name=some[0].name)
            yield Trouble(str(state), level, said, visit.link("/workers"), some[0].heartbeat_at)
    server = platform.server
    if server.connections > _CROWDED * server.max_connections:
        said = visit.t("overview.problem.connections", n=server.connections, max=server.max_connections)
        yield Trouble("crowded", WARN, said, "#server")
    for name, span, most in (
        ("transaction", server.oldest_transaction, _LONG_OPEN),
        ("replication", server.replication_lag, timedelta(minutes=1)),
        ("audit", timedelta(seconds=platform.beside.audit_lag), _LATE),
    ):
        if span is not None and span > most:
            said = visit.t(f"overview.problem.{name}", span=lasting(visit, span.total_seconds()))
            yield Trouble(name, WARN, said, "#server")


def lasting(visit: Visit, seconds: float) -> str:
    """A span of time in a word, coarsely: it must not change with every second."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return visit.t(f"overview.span.{unit}", n=int(seconds // size))
    return visit.t("overview.span.seconds", n=int(seconds))
