"""Limits and pauses of orgs and job types, for those who look after the installation."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.figures import PlatformLimit
from duly.http.params import After, Limit, Shown, Why
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.http.values import NUMERIC
from duly.model.access import Scope

_MOST = 1_000_000
Few = Annotated[int, Field(ge=0, le=_MOST), NUMERIC]


class Gate(Why):
    """An org, a job type, or a job type of an org."""

    org_id: UUID | None = Field(default=None, description="Left out: every org.")
    job_type: str | None = Field(
        default=None, min_length=1, max_length=200, description="Left out: every one."
    )


class NewLimit(Gate):
    """The whole limit as it is to be: what is left out, or null, is no limit."""

    max_running: Few | None = None
    starts_per_second: float | None = Field(default=None, ge=0.0001, le=10_000, strict=True)
    burst: Annotated[int, Field(ge=1, le=_MOST), NUMERIC] | None = Field(
        default=None, description="With a rate; without it, a second's starts."
    )
    max_waiting: Few | None = Field(default=None, description="Of an org only.")


class PlatformLimits(Shown):
    """Some limits; `after` asks for those that follow, and is null at the end."""

    limits: list[PlatformLimit]
    after: str | None


def routes(service: Service) -> APIRouter:
    """What concerns one org is put down in its audit trail, the rest in the system's."""
    api = APIRouter(prefix="/v1/platform/limits", tags=["platform"], route_class=StrictRoute)
    runs = Annotated[Caller, service.allows(Scope.PLATFORM)]
    refusals = documented(404, 413, 415)

    @api.get("", response_model=PlatformLimits, responses=documented())
    async def limits(
        who: runs,
        org_id: UUID | None = None,
        job_type: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
        limit: Limit = 50,
        after: After = None,
    ) -> Response:
        """Everything that was ever limited or paused; of one org, or of one job type, if so wished."""
        page = await service.limits.list(org_id, job_type, limit=limit, after=after)
        return as_json(PlatformLimits.model_validate(page))

    @api.put("", response_model=PlatformLimit, responses=refusals)
    async def limit(request: NewLimit, who: runs) -> Response:
        """Limit an org, a job type, or a job type of an org. A pause stays as it is."""
        done = await service.limits.set(actor=who.actor, **dict(request))
        return as_json(PlatformLimit.model_validate(done))

    @api.post("/pause", response_model=PlatformLimit, responses=refusals)
    async def pause_jobs(request: Gate, who: runs) -> Response:
        """Start none of these jobs until they are resumed; those that run go on, new ones wait."""
        return as_json(
            PlatformLimit.model_validate(await service.limits.pause(actor=who.actor, **dict(request)))
        )

    @api.post("/resume", response_model=PlatformLimit, responses=refusals)
    async def resume_jobs(request: Gate, who: runs) -> Response:
        """Let them start again; other pauses and limits still hold."""
        return as_json(
            PlatformLimit.model_validate(await service.limits.resume(actor=who.actor, **dict(request)))
        )

    return api
