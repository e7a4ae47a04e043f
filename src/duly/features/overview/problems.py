"""The problems of a dashboard, the worst first, each with a link to its cause."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from duly.console.visit import Visit
from duly.core.freshness import FreshnessLabel
from duly.core.job import SYSTEM_ORG
from duly.features.alerts.models import Alert, AlertKind, Severity
from duly.features.overview.models import HOUR, Dashboard, PlatformDetail
from duly.features.queues.models import WorkerState

BAD, WARN, CALM = "bad", "warn", "calm"
_LEVELS = (BAD, WARN, CALM)
_MAX_CONNECTIONS_USED = 0.85
_MAX_TRANSACTION_AGE = timedelta(minutes=10)
_MAX_REPLICATION_LAG = timedelta(minutes=1)
_MAX_AUDIT_LAG = timedelta(minutes=5)
_ALERTS_IN_SECONDS = (AlertKind.OLDEST_AGE, AlertKind.NO_WORKER, AlertKind.RELAY_LAG)


class DashboardProblem(NamedTuple):
    """A problem and the link to its cause."""

    id: str
    level: str
    text: str
    href: str | None
    since: datetime | None = None


def list_problems(visit: Visit, dashboard: Dashboard) -> list[DashboardProblem]:
    """Return the problems of a dashboard, the worst first."""
    problems = [
        *(_alert_problem(visit, alert) for alert in dashboard.alerts),
        *_job_problems(visit, dashboard),
        *(_platform_problems(visit, dashboard, dashboard.platform) if dashboard.platform else ()),
    ]
    return sorted(problems, key=lambda problem: _LEVELS.index(problem.level))


def _alert_problem(visit: Visit, alert: Alert) -> DashboardProblem:
    level = BAD if alert.severity is Severity.CRITICAL else WARN
    text = visit.t(
        f"overview.alert.{alert.kind}",
        n=_format_value(visit, alert.kind, alert.measured),
        max=_format_value(visit, alert.kind, alert.threshold),
        target=alert.target,
        host=alert.detail.get("host", alert.target),
    )
    return DashboardProblem(f"alert-{alert.alert_id}", level, text, _alert_link(visit, alert), alert.fired_at)


def _format_value(visit: Visit, kind: AlertKind, value: float | None) -> str:
    if value is None:
        return "?"
    return format_rough_duration(visit, value) if kind in _ALERTS_IN_SECONDS else f"{round(value, 1):g}"


def _alert_link(visit: Visit, alert: Alert) -> str | None:
    org = {} if alert.org_id in (SYSTEM_ORG, visit.org_id) else {"org": alert.org_id}
    match alert.kind:
        case AlertKind.QUEUE_DEPTH | AlertKind.OLDEST_AGE:
            return visit.link("/jobs", status="queued", queue=alert.target)
        case AlertKind.DEAD_RATE | AlertKind.DEAD_LETTER:
            return visit.link("/dead", **org)
        case AlertKind.STALE_RUNS:
            return visit.link("/jobs", freshness="likely_stale")
        case AlertKind.WEBHOOK_FAILING:
            return visit.link("/webhooks", **org)
        case AlertKind.NO_WORKER:
            return visit.link("/workers") if visit.platform else None
        case AlertKind.RELAY_LAG:
            return None


def _job_problems(visit: Visit, dashboard: Dashboard) -> Iterator[DashboardProblem]:
    """Yield problems of jobs and queues that no alert covers."""
    alerted = {alert.kind for alert in dashboard.alerts}
    if not dashboard.workers and dashboard.waiting.count and AlertKind.NO_WORKER not in alerted:
        href = visit.link("/workers") if visit.platform else None
        yield DashboardProblem("no-worker", BAD, visit.t("overview.problem.no_worker"), href)
    recent = [
        group.last_dead_at for group in dashboard.failures if group.last_dead_at > dashboard.looked_at - HOUR
    ]
    if recent:
        text = visit.t("overview.problem.dead_letters", n=len(recent))
        yield DashboardProblem("dying", WARN, text, visit.link("/dead"), max(recent))
    stale = dashboard.freshness[FreshnessLabel.LIKELY_STALE]
    if stale.count and AlertKind.STALE_RUNS not in alerted:
        text = visit.t("overview.problem.stale", n=stale)
        yield DashboardProblem("stale", WARN, text, visit.link("/jobs", freshness="likely_stale"))
    for queue in dashboard.queues:
        if queue.paused_at:
            name, level = queue.queue, WARN if queue.waiting.count else CALM
            text = visit.t("overview.problem.paused", queue=name, n=queue.waiting)
            yield DashboardProblem(f"paused-{name}", level, text, f"#queue-{name}", queue.paused_at)


def _platform_problems(
    visit: Visit, dashboard: Dashboard, platform: PlatformDetail
) -> Iterator[DashboardProblem]:
    since = dashboard.looked_at - HOUR
    for state in (WorkerState.SILENT, WorkerState.LOST):
        workers = [
            worker for worker in platform.workers if worker.state is state and worker.heartbeat_at > since
        ]
        if workers:
            text = visit.t(f"overview.problem.{state}", n=len(workers), name=workers[0].name)
            yield DashboardProblem(str(state), WARN, text, visit.link("/workers"), workers[0].heartbeat_at)
    server = platform.server
    if server.connections > _MAX_CONNECTIONS_USED * server.max_connections:
        text = visit.t("overview.problem.connections", n=server.connections, max=server.max_connections)
        yield DashboardProblem("crowded", WARN, text, "#server")
    for name, duration, maximum in (
        ("transaction", server.oldest_transaction, _MAX_TRANSACTION_AGE),
        ("replication", server.replication_lag, _MAX_REPLICATION_LAG),
        ("audit", timedelta(seconds=platform.totals.audit_lag), _MAX_AUDIT_LAG),
    ):
        if duration is not None and duration > maximum:
            span = format_rough_duration(visit, duration.total_seconds())
            yield DashboardProblem(name, WARN, visit.t(f"overview.problem.{name}", span=span), "#server")


def format_rough_duration(visit: Visit, seconds: float) -> str:
    """Return a duration in one unit: it must not change with every second."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return visit.t(f"overview.span.{unit}", n=int(seconds // size))
    return visit.t("overview.span.seconds", n=int(seconds))
