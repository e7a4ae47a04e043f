"""Routes of schedules: create, update, pause and resume them, run one now."""

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.responses import Response

from duly.core.principal import Scope
from duly.features.job_submission.routes import check_offered
from duly.features.jobs.models import Accepted
from duly.features.jobs.responses import accepted
from duly.features.schedules.cron import Missed
from duly.features.schedules.service import SchedulePage, ScheduleSnapshot, Tick
from duly.http.params import After, PageSize, Reason, ReasonBody, ReasonParam, StrictModel
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response, list_model, page_model, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

Name = Annotated[str, Path(min_length=1, max_length=500)]
Cron = Annotated[str, Field(min_length=1, max_length=200, examples=["0 3 * * 1-5"])]
Zone = Annotated[str, Field(min_length=1, max_length=100, examples=["Europe/Berlin"])]
JobType = Annotated[str, Field(min_length=1, max_length=200)]


class NewSchedule(StrictModel):
    """A job type that runs on a cron schedule."""

    name: str = Field(
        min_length=1, max_length=500, pattern="^[^/]+$", description="Without slashes: it is a part of paths."
    )
    cron: Cron
    timezone: Zone = "UTC"
    job_type: JobType
    payload: dict[str, Any] = Field(default={}, description="The arguments of the job type, by name.")
    missed: Missed = Field(
        default=Missed.ONCE, description="What happens to ticks during which no scheduler ran."
    )
    project_id: UUID | None = None
    reason: Reason


class ScheduleUpdate(StrictModel):
    """The changed fields of a schedule; the others stay as they are."""

    cron: Cron | None = None
    timezone: Zone | None = None
    job_type: JobType | None = None
    payload: dict[str, Any] | None = None
    missed: Missed | None = None
    reason: Reason


ScheduleResponse = response_model(
    ScheduleSnapshot, "Schedule", exclude=("org_id", "counted_until", "read_at")
)
SchedulePageResponse = page_model("schedules", ScheduleResponse)
TickResponse = response_model(
    Tick,
    exclude=("started_at", "finished_at"),
    descriptions={"status": "The status of the job; null if there is none, or it is no longer retained."},
)
TickList = list_model(
    "recorded", TickResponse, "Ticks", upcoming=(list[datetime], "The next ticks, in order.")
)


def routes(service: Service) -> APIRouter:
    """Return the routes of schedules."""
    api = APIRouter(prefix="/v1/schedules", tags=["schedules"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    operates = Annotated[Requester, service.allows(Scope.OPERATE)]
    schedules, refusals = service.schedules, problem_responses(404, 413, 415)

    @api.get("", response_model=SchedulePageResponse, responses=problem_responses())
    async def list_schedules(requester: reads, limit: PageSize = 50, after: After = None) -> SchedulePage:
        """List the schedules of the org by name."""
        return await schedules.page(requester.org_id, limit=limit, after=after)

    @api.post(
        "",
        status_code=201,
        response_model=ScheduleResponse,
        responses={
            **problem_responses(413, 415),
            200: {"model": ScheduleResponse, "description": "The schedule of that name was updated."},
        },
    )
    async def create(request: NewSchedule, requester: operates) -> Response:
        """Create a schedule, or update the one of that name. Idempotent."""
        check_offered(request.job_type)
        schedule = await schedules.create(requester.org_id, actor=requester.actor, **dict(request))
        location = {"location": requester.link(f"/v1/schedules/{quote(schedule.name, safe='')}")}
        is_new = schedule.created_at == schedule.read_at
        return json_response(ScheduleResponse.model_validate(schedule), 201 if is_new else 200, location)

    @api.get("/{name}/ticks", response_model=TickList, responses=problem_responses(404))
    async def ticks(
        name: Name,
        requester: reads,
        limit: Annotated[int, Query(ge=1, le=1000, description="The number of each.")] = 20,
    ) -> dict[str, object]:
        """List the last ticks of a schedule and what came of them, and its next ticks, even if paused."""
        return {
            "recorded": await schedules.ticks(requester.org_id, name, limit),
            "upcoming": await schedules.upcoming(requester.org_id, name, limit),
        }

    @api.post("/{name}/pause", response_model=ScheduleResponse, responses=refusals)
    async def pause(name: Name, request: ReasonBody, requester: operates) -> ScheduleSnapshot:
        """Pause a schedule; its ticks are recorded as missed until it is resumed."""
        return await schedules.pause(requester.org_id, name, requester.actor, request.reason)

    @api.post("/{name}/resume", response_model=ScheduleResponse, responses=refusals)
    async def resume(name: Name, request: ReasonBody, requester: operates) -> ScheduleSnapshot:
        """Resume a schedule from its next tick."""
        return await schedules.resume(requester.org_id, name, requester.actor, request.reason)

    @api.post("/{name}/run-now", status_code=202, response_model=Accepted, responses=refusals)
    async def run_now(name: Name, request: ReasonBody, requester: operates) -> Response:
        """Run a schedule once now, even if it is paused."""
        handle = await schedules.run_now(requester.org_id, name, requester.actor, request.reason)
        return accepted(requester, handle.job_id, None)

    @api.get("/{name}", response_model=ScheduleResponse, responses=problem_responses(404))
    async def show(name: Name, requester: reads) -> ScheduleSnapshot:
        """Get a schedule."""
        return await schedules.get(requester.org_id, name)

    @api.patch("/{name}", response_model=ScheduleResponse, responses=refusals)
    async def change(name: Name, request: ScheduleUpdate, requester: operates) -> ScheduleSnapshot:
        """Update a schedule. A new expression or time zone counts from now on."""
        check_offered(request.job_type or "")
        return await schedules.change(requester.org_id, name, actor=requester.actor, **dict(request))

    @api.delete("/{name}", status_code=204, response_class=Response, responses=problem_responses(404))
    async def delete(name: Name, reason: ReasonParam, requester: operates) -> None:
        """Delete a schedule. Its recorded ticks and its jobs stay; the name is free again."""
        await schedules.delete(requester.org_id, name, requester.actor, reason)

    return api
