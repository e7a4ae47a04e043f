"""Folders of the org, and whom they are for."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from duly.apps.documents.http.models import (
    FolderChange,
    FoldersShown,
    GrantsGiven,
    GrantsShown,
    NewFolder,
    visitor,
)
from duly.apps.documents.models import Folder
from duly.core.principal import Scope
from duly.http.params import ReasonParam
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

_FOLDERS = "/v1/documents/folders"


def routes(service: Service) -> APIRouter:
    """A folder that is closed to somebody is not there for them."""
    api = APIRouter(prefix=_FOLDERS, tags=["documents"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    writes = Annotated[Requester, service.allows(Scope.WRITE)]
    folders, refusals = service.documents.folders, problem_responses(404, 409, 413, 415)

    @api.get("", response_model=FoldersShown, responses=problem_responses())
    async def list_folders(who: reads) -> Response:
        """All folders that are open to you, by their paths."""
        return json_response(FoldersShown(folders=[*await folders.list(visitor(who))]))

    @api.post("", status_code=201, response_model=Folder, responses=refusals)
    async def create_folder(request: NewFolder, who: writes) -> Response:
        """A new folder in another, or in the root."""
        made = await folders.create(visitor(who), request.name, request.parent_id)
        return json_response(made, 201, {"location": who.link(f"{_FOLDERS}/{made.node_id}")})

    @api.get("/{node_id}", response_model=Folder, responses=problem_responses(404))
    async def show_folder(node_id: UUID, who: reads) -> Response:
        """One folder."""
        return json_response(await folders.get(visitor(who), node_id))

    @api.patch("/{node_id}", response_model=Folder, responses=refusals)
    async def change_folder(node_id: UUID, request: FolderChange, who: writes) -> Response:
        """Another name, or another place."""
        changed = await folders.change(
            visitor(who),
            node_id,
            name=request.name,
            move_to=request.parent_id,
            moves="parent_id" in request.model_fields_set,
        )
        return json_response(changed)

    @api.delete("/{node_id}", status_code=204, response_class=Response, responses=problem_responses(404, 409))
    async def remove_folder(node_id: UUID, reason: ReasonParam, who: writes) -> Response:
        """Remove an empty folder."""
        await folders.remove(visitor(who), node_id, reason=reason)
        return Response(status_code=204)

    @api.get("/{node_id}/grants", response_model=GrantsShown, responses=problem_responses(404))
    async def show_grants(node_id: UUID, who: reads) -> Response:
        """Whom it is for; nobody named means that it follows the folder that it lies in."""
        return json_response(GrantsShown(grants=[*await folders.grants(visitor(who), node_id)]))

    @api.put("/{node_id}/grants", response_model=GrantsShown, responses=problem_responses(404, 413, 415))
    async def set_grants(node_id: UUID, request: GrantsGiven, who: writes) -> Response:
        """Say whom it is for, all of them at once. For those who manage it, and admins of the org."""
        asker = visitor(who)
        await folders.set_grants(asker, node_id, request.grants, reason=request.reason)
        return json_response(GrantsShown(grants=[*request.grants]))

    return api
