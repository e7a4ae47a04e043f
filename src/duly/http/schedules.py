"""Schedules: made, changed, paused and run by hand."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from duly.http.answers import accepted, as_json
from duly.http.caller import Caller
from duly.http.params import After, Because, Limit, Why
from duly.http.problems import documented
from duly.http.schedule_shapes import (
    NewSchedule,
    ScheduleChange,
    ScheduleShown,
    SchedulesShown,
    Ticks,
    TickShown,
)
from duly.http.service import Service
from duly.http.shapes import Accepted
from duly.http.strict import StrictRoute
from duly.http.types import check_offered
from duly.model.access import Scope
from duly.store.schedules import ScheduleSnapshot

Name = Annotated[str, Path(min_length=1, max_length=500)]


def routes(service: Service) -> APIRouter:
    """What is done again and again."""
    api = APIRouter(prefix="/v1/schedules", tags=["schedules"], route_class=StrictRoute)
    reads = Annotated[Caller, service.allows(Scope.READ)]
    operates = Annotated[Caller, service.allows(Scope.OPERATE)]
    refusals = documented(404, 413, 415)

    @api.get("", response_model=SchedulesShown, responses=documented())
    async def list_schedules(who: reads, limit: Limit = 50, after: After = None) -> Response:
        """The schedules of the org, by name."""
        page = await service.schedules.page(who.org_id, limit=limit, after=after)
        listed = [ScheduleShown.model_validate(one) for one in page.schedules]
        return as_json(SchedulesShown(schedules=listed, after=page.after))

    @api.post(
        "",
        status_code=201,
        response_model=ScheduleShown,
        responses={
            **documented(413, 415),
            200: {"model": ScheduleShown, "description": "There was one of that name; it is so now."},
        },
    )
    async def create(request: NewSchedule, who: operates) -> Response:
        """Make it, or change the one of that name; asked again, it changes nothing."""
        check_offered(request.job_type)
        made = await service.schedules.create(who.org_id, actor=who.actor, **dict(request))
        place = {"location": who.link(f"/v1/schedules/{quote(made.name, safe='')}")}
        is_new = made.created_at == made.read_at
        return as_json(ScheduleShown.model_validate(made), 201 if is_new else 200, place)

    @api.get("/{name}/ticks", response_model=Ticks, responses=documented(404))
    async def ticks(
        name: Name, who: reads, limit: Annotated[int, Query(ge=1, le=1000, description="Of each.")] = 20
    ) -> Response:
        """What became of its last ticks, and when it ticks next; paused, when it would."""
        done = await service.schedules.ticks(who.org_id, name, limit)
        coming = await service.schedules.upcoming(who.org_id, name, limit)
        return as_json(Ticks(recorded=[TickShown.model_validate(tick) for tick in done], upcoming=coming))

    @api.post("/{name}/pause", response_model=ScheduleShown, responses=refusals)
    async def pause(name: Name, request: Why, who: operates) -> Response:
        """Run nothing until it is resumed; ticks are recorded as missed meanwhile."""
        return _shown(await service.schedules.pause(who.org_id, name, who.actor, request.reason))

    @api.post("/{name}/resume", response_model=ScheduleShown, responses=refusals)
    async def resume(name: Name, request: Why, who: operates) -> Response:
        """Let it run again, from its next tick on."""
        return _shown(await service.schedules.resume(who.org_id, name, who.actor, request.reason))

    @api.post("/{name}/run-now", status_code=202, response_model=Accepted, responses=refusals)
    async def run_now(name: Name, request: Why, who: operates) -> Response:
        """Run it once more, here and now, paused or not."""
        handle = await service.schedules.run_now(who.org_id, name, who.actor, request.reason)
        return accepted(who, handle.job_id, None)

    @api.get("/{name}", response_model=ScheduleShown, responses=documented(404))
    async def show(name: Name, who: reads) -> Response:
        """One schedule as it is now."""
        return _shown(await service.schedules.get(who.org_id, name))

    @api.patch("/{name}", response_model=ScheduleShown, responses=refusals)
    async def change(name: Name, request: ScheduleChange, who: operates) -> Response:
        """Change a part of it. Another expression or zone counts from now on."""
        check_offered(request.job_type or "")
        return _shown(await service.schedules.change(who.org_id, name, actor=who.actor, **dict(request)))

    @api.delete("/{name}", status_code=204, response_class=Response, responses=documented(404))
    async def delete(name: Name, reason: Because, who: operates) -> Response:
        """End it. Its ticks stay on record and its jobs go on; the name is free again."""
        await service.schedules.delete(who.org_id, name, who.actor, reason)
        return Response(status_code=204)

    return api


def _shown(schedule: ScheduleSnapshot) -> Response:
    return as_json(ScheduleShown.model_validate(schedule))
