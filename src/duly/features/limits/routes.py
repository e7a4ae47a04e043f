"""Routes of limits and pauses of orgs and job types, for operators of the installation."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field

from duly.core.principal import Scope
from duly.features.limits.service import (
    MAX_LIMIT,
    MAX_STARTS_PER_SECOND,
    MIN_STARTS_PER_SECOND,
    Limit,
    LimitPage,
)
from duly.http.params import NUMERIC, After, PageSize, ReasonBody
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import page_model, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

LimitValue = Annotated[int, Field(ge=0, le=MAX_LIMIT), NUMERIC]
_DESCRIPTIONS = {"org_id": "Null: every org.", "job_type": "Null: every job type."}

OrgLimitResponse = response_model(Limit, "OrgLimit", descriptions=_DESCRIPTIONS)
LimitResponse = response_model(Limit, exclude=(), descriptions=_DESCRIPTIONS)
LimitPageResponse = page_model("limits", LimitResponse)


class LimitTarget(ReasonBody):
    """An org, a job type, or a job type of an org."""

    org_id: UUID | None = Field(default=None, description="Default: every org.")
    job_type: str | None = Field(
        default=None, min_length=1, max_length=200, description="Default: every job type."
    )


class NewLimit(LimitTarget):
    """The complete limit; a field that is missing or null is not limited."""

    max_running: LimitValue | None = None
    starts_per_second: float | None = Field(
        default=None, ge=MIN_STARTS_PER_SECOND, le=MAX_STARTS_PER_SECOND, strict=True
    )
    burst: Annotated[int, Field(ge=1, le=MAX_LIMIT), NUMERIC] | None = Field(
        default=None, description="With a rate; the default is the starts of one second."
    )
    max_waiting: LimitValue | None = Field(default=None, description="Only for an org.")


def routes(service: Service) -> APIRouter:
    """Return the routes of limits. Changes of one org are in its audit trail, others in the system's."""
    api = APIRouter(prefix="/v1/platform/limits", tags=["platform"], route_class=StrictRoute)
    runs = Annotated[Requester, service.allows(Scope.PLATFORM)]
    refusals = problem_responses(404, 413, 415)

    @api.get("", response_model=LimitPageResponse, responses=problem_responses())
    async def limits(
        requester: runs,
        org_id: UUID | None = None,
        job_type: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
        limit: PageSize = 50,
        after: After = None,
    ) -> LimitPage:
        """List the limits and pauses, of all orgs and job types or of one."""
        return await service.limits.list(org_id, job_type, limit=limit, after=after)

    @api.put("", response_model=LimitResponse, responses=refusals)
    async def limit(request: NewLimit, requester: runs) -> Limit:
        """Set the limit of an org, a job type, or a job type of an org. A pause stays as it is."""
        return await service.limits.set(actor=requester.actor, **dict(request))

    @api.post("/pause", response_model=LimitResponse, responses=refusals)
    async def pause_jobs(request: LimitTarget, requester: runs) -> Limit:
        """Pause jobs: running ones continue, queued ones wait until they are resumed."""
        return await service.limits.pause(actor=requester.actor, **dict(request))

    @api.post("/resume", response_model=LimitResponse, responses=refusals)
    async def resume_jobs(request: LimitTarget, requester: runs) -> Limit:
        """Resume jobs; other pauses and limits still apply."""
        return await service.limits.resume(actor=requester.actor, **dict(request))

    return api
