"""The projects of the org: what its jobs can be told apart by."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.params import After, Limit, Shown, Text, Why
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.model.access import Scope


class ProjectWanted(Why):
    """A project to be made."""

    project_id: UUID | None = Field(default=None, description="Yours, or it gets one.")
    name: Text


class ProjectShown(Shown):
    """A project."""

    project_id: UUID
    name: str
    created_at: datetime


class ProjectsShown(Shown):
    """Some projects; `after` asks for those that follow, and is null at the end."""

    projects: list[ProjectShown]
    after: str | None


def routes(service: Service) -> APIRouter:
    """They are made, and stay."""
    api = APIRouter(prefix="/v1/projects", tags=["org"], route_class=StrictRoute)

    @api.get("", response_model=ProjectsShown, responses=documented())
    async def list_projects(
        who: Annotated[Caller, service.allows(Scope.READ)], limit: Limit = 50, after: After = None
    ) -> Response:
        """The projects of the org, by their ids."""
        page = await service.orgs.list_projects(who.org_id, limit=limit, after=after)
        return as_json(ProjectsShown.model_validate(page))

    @api.post("", status_code=201, response_model=ProjectShown, responses=documented(409, 413, 415))
    async def create_project(
        request: ProjectWanted, who: Annotated[Caller, service.allows(Scope.ADMIN)]
    ) -> Response:
        """Make a project. Asked again with its id, it changes nothing."""
        made = await service.orgs.create_project(
            who.org_id, request.project_id, request.name, actor=who.actor, reason=request.reason
        )
        return as_json(ProjectShown.model_validate(made), 201)

    return api
