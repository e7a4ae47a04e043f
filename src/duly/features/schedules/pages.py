"""The console pages of schedules: next ticks, history; run now, pause and resume."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import NamedTuple
from zoneinfo import ZoneInfo

from starlette.responses import Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import ConsolePage, Visit
from duly.core.errors import ContractError
from duly.core.principal import Scope
from duly.core.redaction import redact
from duly.features.schedules.models import Disposition, ScheduleSnapshot, Tick

_PAGE_SIZE, _TICKS_PER_SCHEDULE = 25, 12
_HISTORY_PAGE_SIZE, _UPCOMING_TICKS = 50, 5


class LocalTime(NamedTuple):
    """A time, and its text in the zone of the schedule."""

    at: datetime
    text: str


class TickRow(NamedTuple):
    """A tick as a row of the history."""

    tick: Tick
    due: LocalTime
    state: str
    """The state of its chip."""
    label: str
    delay: float | None
    duration: float | None


async def schedules_page(visit: Visit) -> ConsolePage:
    """List the schedules of the org by name, each with its last ticks."""
    after = visit.query.get("after")
    page = await visit.service.schedules.page(visit.org_id, limit=_PAGE_SIZE, after=after)
    recent = await visit.service.schedules.recent(page.schedules, _TICKS_PER_SCHEDULE)
    rows = [
        {
            "schedule": schedule,
            "state": _state(schedule),
            "next": next(_upcoming(visit, schedule), None),
            "ticks": [_tick_row(visit, schedule, tick) for tick in reversed(recent[schedule.schedule_id])],
        }
        for schedule in page.schedules
    ]
    return visit.page(
        "schedules.html", title=visit.t("schedules.title"), rows=rows, after=page.after, first=after is None
    )


async def schedule_page(visit: Visit) -> ConsolePage:
    """Show a schedule with its next ticks and its history."""
    name, after = visit.params["name"], visit.query.get("after")
    schedule = await visit.service.schedules.get(visit.org_id, name)
    history = await visit.service.schedules.history(visit.org_id, name, limit=_HISTORY_PAGE_SIZE, after=after)
    return visit.page(
        "schedule.html",
        title=schedule.name,
        schedule=schedule,
        state=_state(schedule),
        upcoming=[*islice(_upcoming(visit, schedule), _UPCOMING_TICKS)],
        history=[_tick_row(visit, schedule, tick) for tick in history.ticks],
        payload=redact(json.dumps(schedule.payload, indent=2, ensure_ascii=False)),
        after=history.after,
        first=after is None,
    )


async def run(visit: Visit, form: Form) -> Response:
    """Run a schedule once, now."""
    name = visit.params["name"]
    handle = await visit.service.schedules.run_now(visit.org_id, name, visit.actor, form.reason)
    return visit.done("schedules.ran", to=f"/jobs/{handle.job_id}", name=name)


async def pause(visit: Visit, form: Form) -> Response:
    """Pause a schedule."""
    name = visit.params["name"]
    await visit.service.schedules.pause(visit.org_id, name, visit.actor, form.reason)
    return visit.done("schedules.done.pause", to=f"/schedules/{name}", name=name)


async def resume(visit: Visit, form: Form) -> Response:
    """Resume a paused schedule."""
    name = visit.params["name"]
    await visit.service.schedules.resume(visit.org_id, name, visit.actor, form.reason)
    return visit.done("schedules.done.resume", to=f"/schedules/{name}", name=name)


def _state(schedule: ScheduleSnapshot) -> str:
    if schedule.paused_at:
        return "paused"
    return "trouble" if schedule.last_error and schedule.retry_at else "active"


def _upcoming(visit: Visit, schedule: ScheduleSnapshot) -> Iterator[LocalTime]:
    try:
        times = schedule.times
    except ContractError:  # the row was edited by hand: it never ticks
        return
    for at in times.ticks(schedule.read_at):
        yield _local_time(visit, schedule, at)


def _local_time(visit: Visit, schedule: ScheduleSnapshot, at: datetime) -> LocalTime:
    try:
        local = at.astimezone(ZoneInfo(schedule.timezone))
    except (KeyError, ValueError, OSError):
        local = at
    day = visit.t(f"schedules.day.{local.weekday()}")
    time = f"{local:%H:%M:%S}".removesuffix(":00")
    return LocalTime(at, f"{day} {local:%Y-%m-%d} {time}")


def _tick_row(visit: Visit, schedule: ScheduleSnapshot, tick: Tick) -> TickRow:
    due = _local_time(visit, schedule, tick.tick_at)
    delay = (tick.recorded_at - tick.tick_at).total_seconds()
    if tick.disposition is Disposition.MISSED:
        return TickRow(tick, due, "missed", visit.t("schedules.missed.run"), delay, None)
    if tick.status is None:
        return TickRow(tick, due, "gone", visit.t("schedules.job_expired"), delay, None)
    duration = tick.started_at and tick.finished_at and (tick.finished_at - tick.started_at).total_seconds()
    return TickRow(tick, due, tick.status, visit.t(f"status.{tick.status}"), delay, duration or None)


ROUTES = (
    Show("/schedules", schedules_page, nav="schedules.title"),
    Show("/schedules/{name:path}", schedule_page),
    Act("/schedules/{name:path}/run", run, Scope.OPERATE, schedule_page),
    Act("/schedules/{name:path}/pause", pause, Scope.OPERATE, schedule_page),
    Act("/schedules/{name:path}/resume", resume, Scope.OPERATE, schedule_page),
)
