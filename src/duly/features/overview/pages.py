"""The overview page: problems, figures and the activity of queues."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from duly.console import sparklines as sparks
from duly.console.routing import Show
from duly.console.sparklines import Bars, Line
from duly.console.visit import ConsolePage, Visit
from duly.features.overview.models import HOUR, MINUTE, MINUTES, DashboardQueue
from duly.features.overview.problems import list_problems
from duly.http.options import EVERY_SUBJECT
from duly.worker.queue_stats import QueueActivity

_MAX_AGE = timedelta(seconds=4)
"""Viewers share a dashboard for this time."""


class QueueRow(NamedTuple):
    """A queue with the sparklines of its last hour."""

    queue: DashboardQueue
    done: Bars
    waits: Line
    runs: Line


async def page(visit: Visit) -> ConsolePage:
    """Show the overview of an org, or of the installation."""
    dashboard = await visit.service.overview.dashboard(
        None if visit.all_orgs else visit.org_id, max_age=_MAX_AGE
    )
    sees_all = await visit.is_visible(EVERY_SUBJECT)
    if not sees_all:
        # Alerts and errors may name subjects that the visitor may not see; numbers do not.
        dashboard = replace(dashboard, alerts=(), failures=())
    return visit.page(
        "overview.html",
        title=visit.t("overview.title"),
        dashboard=dashboard,
        sees_all=sees_all,
        problems=list_problems(visit, dashboard),
        rows=[_row(queue) for queue in dashboard.queues if not queue.idle],
        idle=[queue for queue in dashboard.queues if queue.idle and dashboard.platform],
        hour=dashboard.hour,
        done=_done(dashboard.minutes),
        failures=sparks.bars([0] * MINUTES, [minute.failed for minute in dashboard.minutes]),
        runs=_quantiles(dashboard.minutes, "run"),
        shortened=dashboard.since > dashboard.looked_at - HOUR + MINUTE,
    )


def _row(queue: DashboardQueue) -> QueueRow:
    minutes = queue.minutes
    return QueueRow(queue, _done(minutes), _quantiles(minutes, "wait"), _quantiles(minutes, "run"))


def _done(minutes: tuple[QueueActivity, ...]) -> Bars:
    return sparks.bars(
        [minute.completed + minute.canceled for minute in minutes], [minute.failed for minute in minutes]
    )


def _quantiles(minutes: tuple[QueueActivity, ...], kind: str) -> Line:
    """Draw the 95th percentile of wait or run times."""
    durations = [getattr(minute, kind)(0.95) for minute in minutes]
    return sparks.line([None if one is None else one.total_seconds() for one in durations])


ROUTES = (Show("/", page, nav="overview.title"),)
