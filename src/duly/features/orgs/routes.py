"""Routes of orgs: the requester's own org and its projects; all orgs, for operators of the installation."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from duly.core.errors import ContractError
from duly.core.policy import DEAD_LETTER_QUEUE
from duly.core.principal import ROLE_SCOPES, Role, Scope
from duly.features.api_keys.routes import KeyRequest, KeySecretResponse, key_secret_response
from duly.features.limits.routes import OrgLimitResponse
from duly.features.limits.service import LimitPage
from duly.features.orgs.service import Org, OrgPage, OrgStatus, Project, ProjectPage
from duly.features.overview.models import OrgOverview
from duly.features.pagination import Count
from duly.features.queues.routes import QueueResponse
from duly.http.params import After, PageSize, ReasonBody, Text
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response, list_model, page_model, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute, combine_routers

_ZERO = Count(count=0, at_least=False)


class NewProject(ReasonBody):
    """A project of the org."""

    project_id: UUID | None = Field(default=None, description="Your id; default: a new one.")
    name: Text


class NewOrg(ReasonBody):
    """An org; without an id it gets a new one."""

    org_id: UUID | None = None
    name: Text


class OrgUpdate(ReasonBody):
    """One change: the name, or the status."""

    name: Text | None = None
    status: OrgStatus | None = None


class OrgKeyRequest(KeyRequest):
    """A key for the administrators of an org, by default with all scopes there."""

    scopes: list[Scope] = Field(default=sorted(ROLE_SCOPES[Role.ADMIN]), min_length=1, max_length=len(Scope))


OrgResponse = response_model(Org, exclude=())
OrgPageResponse = page_model("orgs", OrgResponse)
OverviewResponse = response_model(OrgOverview, exclude=("org_id", "workers", "slots"))
OrgDetailResponse = response_model(
    Org,
    "OrgDetail",
    exclude=(),
    limits=(OrgLimitResponse, "Of all jobs of the org together; job types may have their own."),
    overview=OverviewResponse,
)
OrgLimitPage = page_model("limits", OrgLimitResponse)
OrgQueueList = list_model(
    "queues",
    response_model(
        QueueResponse,
        "OrgQueue",
        include=("queue", "weight", "paused_at"),
        waiting=(Count, "Queued jobs of the org."),
        oldest_waiting_at=datetime | None,
    ),
)
ProjectResponse = response_model(Project)
ProjectPageResponse = page_model("projects", ProjectResponse)


def routes(service: Service) -> APIRouter:
    """Return the routes of orgs."""
    return combine_routers(_own_org_routes(service), _platform_routes(service))


def _own_org_routes(service: Service) -> APIRouter:
    """Return the routes of the org of the credential; no request can name another."""
    api = APIRouter(prefix="/v1", tags=["org"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    administers = Annotated[Requester, service.allows(Scope.ADMIN)]

    @api.get("/org", response_model=OrgDetailResponse, responses=problem_responses())
    async def org(requester: reads) -> dict[str, object]:
        """Get the org, its statistics, and the limits of all its jobs together."""
        return {
            **dict(await service.orgs.get(requester.org_id)),
            "limits": await service.limits.get(requester.org_id),
            "overview": await service.overview.org(requester.org_id),
        }

    @api.get("/org/overview", response_model=OverviewResponse, responses=problem_responses())
    async def overview(requester: reads) -> OrgOverview:
        """Get the statistics of the org: queued, running and dead jobs, and those that ended within a day."""
        return await service.overview.org(requester.org_id)

    @api.get("/org/limits", response_model=OrgLimitPage, responses=problem_responses())
    async def limits(requester: reads, limit: PageSize = 50, after: After = None) -> LimitPage:
        """List the limits and pauses of the org and of its job types."""
        return await service.limits.list(requester.org_id, limit=limit, after=after)

    @api.get("/queues", response_model=OrgQueueList, responses=problem_responses())
    async def queues(requester: reads) -> dict[str, object]:
        """List the queues, whether they are paused, and the queued jobs of the org."""
        shares = {share.queue: share for share in (await service.overview.org(requester.org_id)).waiting}
        known = [queue for queue in await service.queues.known() if queue.queue != DEAD_LETTER_QUEUE]
        return {
            "queues": [
                {
                    **dict(queue),
                    "waiting": share.waiting if (share := shares.get(queue.queue)) else _ZERO,
                    "oldest_waiting_at": share.oldest_waiting_at if share else None,
                }
                for queue in known
            ]
        }

    @api.get("/projects", response_model=ProjectPageResponse, responses=problem_responses())
    async def list_projects(requester: reads, limit: PageSize = 50, after: After = None) -> ProjectPage:
        """List the projects of the org by id."""
        return await service.orgs.list_projects(requester.org_id, limit=limit, after=after)

    @api.post(
        "/projects",
        status_code=201,
        response_model=ProjectResponse,
        responses=problem_responses(409, 413, 415),
    )
    async def create_project(request: NewProject, requester: administers) -> Project:
        """Create a project. Idempotent with the same id."""
        return await service.orgs.create_project(
            requester.org_id,
            request.project_id,
            request.name,
            actor=requester.actor,
            reason=request.reason,
        )

    return api


def _platform_routes(service: Service) -> APIRouter:
    """Return the routes of all orgs. Each change is in the audit trail of the org."""
    api = APIRouter(prefix="/v1/platform/orgs", tags=["platform"], route_class=StrictRoute)
    runs = Annotated[Requester, service.allows(Scope.PLATFORM)]

    @api.get("", response_model=OrgPageResponse, responses=problem_responses())
    async def list_orgs(requester: runs, limit: PageSize = 50, after: After = None) -> OrgPage:
        """List the orgs, including suspended ones and the system's own."""
        return await service.orgs.list(limit=limit, after=after)

    @api.post("", status_code=201, response_model=OrgResponse, responses=problem_responses(409, 413, 415))
    async def create_org(request: NewOrg, requester: runs) -> Response:
        """Create an org. Idempotent with the same id."""
        created = await service.orgs.create(
            request.org_id, request.name, actor=requester.actor, reason=request.reason
        )
        headers = {"location": requester.link(f"/v1/platform/orgs/{created.org_id}")}
        return json_response(OrgResponse.model_validate(created), 201, headers)

    @api.get("/{org_id}", response_model=OrgResponse, responses=problem_responses(404))
    async def show_org(org_id: UUID, requester: runs) -> Org:
        """Get an org."""
        return await service.orgs.get(org_id)

    @api.patch("/{org_id}", response_model=OrgResponse, responses=problem_responses(404, 413, 415))
    async def change_org(org_id: UUID, request: OrgUpdate, requester: runs) -> Org:
        """Rename, suspend or resume an org. A suspended org admits no member, key or job."""
        if (request.name is None) == (request.status is None):
            raise ContractError("give either name or status", field="name", fix="change one thing at a time")
        if request.name is not None:
            return await service.orgs.rename(
                org_id, request.name, actor=requester.actor, reason=request.reason
            )
        change = service.orgs.suspend if request.status is OrgStatus.SUSPENDED else service.orgs.resume
        return await change(org_id, actor=requester.actor, reason=request.reason)

    @api.post(
        "/{org_id}/keys",
        status_code=201,
        response_model=KeySecretResponse,
        responses=problem_responses(404, 409, 413, 415),
    )
    async def create_key(org_id: UUID, request: OrgKeyRequest, requester: runs) -> Response:
        """Create an API key of an org, for its administrators."""
        created = await service.api_keys.create(org_id, actor=requester.actor, **dict(request))
        return key_secret_response(requester, created)

    return api
