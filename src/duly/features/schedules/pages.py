"""Schedules: when each ticks next, what became of its ticks, and running, pausing, resuming it."""

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
from duly.console.visit import Page, Visit
from duly.core.errors import ContractError
from duly.core.principal import Scope
from duly.core.redaction import redact
from duly.features.schedules.cron import Disposition
from duly.features.schedules.service import ScheduleSnapshot, Tick

_AT_A_TIME, _TICKS_EACH = 25, 12
_HISTORY, _UPCOMING = 50, 5


class Moment(NamedTuple):
    """A moment, and what the clock of the schedule's zone shows then."""

    at: datetime
    text: str


class Came(NamedTuple):
    """What became of a tick."""

    tick: Tick
    due: Moment
    look: str
    """Which chip it has."""
    word: str
    late: float | None
    took: float | None


async def listed(visit: Visit) -> Page:
    """The schedules of the org by name, each with its last ticks."""
    after = visit.query.get("after")
    page = await visit.service.schedules.page(visit.org_id, limit=_AT_A_TIME, after=after)
    recent = await visit.service.schedules.recent(page.schedules, _TICKS_EACH)
    rows = [
        {
            "schedule": one,
            "state": _state(one),
            "next": next(_upcoming(visit, one), None),
            "ticks": [_came(visit, one, tick) for tick in reversed(recent[one.schedule_id])],
        }
        for one in page.schedules
    ]
    return visit.page(
        "schedules.html", title=visit.t("schedules.title"), rows=rows, after=page.after, first=after is None
    )


async def shown(visit: Visit) -> Page:
    """One schedule."""
    name, after = visit.params["name"], visit.query.get("after")
    one = await visit.service.schedules.get(visit.org_id, name)
    history = await visit.service.schedules.history(visit.org_id, name, limit=_HISTORY, after=after)
    return visit.page(
        "schedule.html",
        title=one.name,
        schedule=one,
        state=_state(one),
        upcoming=[*islice(_upcoming(visit, one), _UPCOMING)],
        history=[_came(visit, one, tick) for tick in history.ticks],
        payload=redact(json.dumps(one.payload, indent=2, ensure_ascii=False)),
        after=history.after,
        first=after is None,
    )


async def run(visit: Visit, form: Form) -> Response:
    """Run it once more."""
    name = visit.params["name"]
    handle = await visit.service.schedules.run_now(visit.org_id, name, visit.actor, form.reason)
    return visit.done("schedules.ran", to=f"/jobs/{handle.job_id}", name=name)


async def pause(visit: Visit, form: Form) -> Response:
    """Run nothing until it is resumed."""
    name = visit.params["name"]
    await visit.service.schedules.pause(visit.org_id, name, visit.actor, form.reason)
    return visit.done("schedules.done.pause", to=f"/schedules/{name}", name=name)


async def resume(visit: Visit, form: Form) -> Response:
    """Let it run again."""
    name = visit.params["name"]
    await visit.service.schedules.resume(visit.org_id, name, visit.actor, form.reason)
    return visit.done("schedules.done.resume", to=f"/schedules/{name}", name=name)


def _state(one: ScheduleSnapshot) -> str:
    return "paused" if one.paused_at else "trouble" if one.last_error and one.retry_at else "active"


def _upcoming(visit: Visit, one: ScheduleSnapshot) -> Iterator[Moment]:
    try:
        times = one.times
    except ContractError:  # written by hand: it never ticks
        return
    for at in times.ticks(one.read_at):
        yield _moment(visit, one, at)


def _moment(visit: Visit, one: ScheduleSnapshot, at: datetime) -> Moment:
    try:
        local = at.astimezone(ZoneInfo(one.timezone))
    except (KeyError, ValueError, OSError):
        local = at
    day = visit.t(f"schedules.day.{local.weekday()}")
    seconds = f"{local:%H:%M:%S}".removesuffix(":00")
    return Moment(at, f"{day} {local:%Y-%m-%d} {seconds}")


def _came(visit: Visit, one: ScheduleSnapshot, tick: Tick) -> Came:
    due, late = _moment(visit, one, tick.tick_at), (tick.recorded_at - tick.tick_at).total_seconds()
    if tick.disposition is Disposition.MISSED:
        return Came(tick, due, "missed", visit.t("schedules.missed.tick"), late, None)
    if tick.status is None:
        return Came(tick, due, "gone", visit.t("schedules.gone"), late, None)
    ran = tick.started_at and tick.finished_at and (tick.finished_at - tick.started_at).total_seconds()
    return Came(tick, due, tick.status, visit.t(f"status.{tick.status}"), late, ran or None)


ROUTES = (
    Show("/schedules", listed, nav="schedules.title"),
    Show("/schedules/{name:path}", shown),
    Act("/schedules/{name:path}/run", run, Scope.OPERATE, shown),
    Act("/schedules/{name:path}/pause", pause, Scope.OPERATE, shown),
    Act("/schedules/{name:path}/resume", resume, Scope.OPERATE, shown),
)
