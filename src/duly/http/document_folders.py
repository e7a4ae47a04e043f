"""Folders of the org, and whom they are for."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from duly.documents.shapes import Node
from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.document_shapes import (
    FolderChange,
    FoldersShown,
    GrantsGiven,
    GrantsShown,
    NewFolder,
    visitor,
)
from duly.http.params import Because
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.model.access import Scope

_FOLDERS = "/v1/documents/folders"


def routes(service: Service) -> APIRouter:
    """A folder that is closed to somebody is not there for them."""
    api = APIRouter(prefix=_FOLDERS, tags=["documents"], route_class=StrictRoute)
    reads = Annotated[Caller, service.allows(Scope.READ)]
    writes = Annotated[Caller, service.allows(Scope.WRITE)]
    folders, refusals = service.documents.folders, documented(404, 409, 413, 415)

    @api.get("", response_model=FoldersShown, responses=documented())
    async def list_folders(who: reads) -> Response:
        """All folders that are open to you, by their paths."""
        return as_json(FoldersShown(folders=[*await folders.list(visitor(who))]))

    @api.post("", status_code=201, response_model=Node, responses=refusals)
    async def create_folder(request: NewFolder, who: writes) -> Response:
        """A new folder in another, or in the root."""
        made = await folders.create(visitor(who), request.name, request.parent_id)
        return as_json(made, 201, {"location": who.link(f"{_FOLDERS}/{made.node_id}")})

    @api.get("/{node_id}", response_model=Node, responses=documented(404))
    async def show_folder(node_id: UUID, who: reads) -> Response:
        """One folder."""
        return as_json(await folders.get(visitor(who), node_id))

    @api.patch("/{node_id}", response_model=Node, responses=refusals)
    async def change_folder(node_id: UUID, request: FolderChange, who: writes) -> Response:
        """Another name, or another place."""
        changed = await folders.change(
            visitor(who),
            node_id,
            name=request.name,
            move_to=request.parent_id,
            moves="parent_id" in request.model_fields_set,
        )
        return as_json(changed)

    @api.delete("/{node_id}", status_code=204, response_class=Response, responses=documented(404, 409))
    async def remove_folder(node_id: UUID, reason: Because, who: writes) -> Response:
        """Remove an empty folder."""
        await folders.remove(visitor(who), node_id, reason=reason)
        return Response(status_code=204)

    @api.get("/{node_id}/grants", response_model=GrantsShown, responses=documented(404))
    async def show_grants(node_id: UUID, who: reads) -> Response:
        """Whom it is for; nobody named means that it follows the folder that it lies in."""
        return as_json(GrantsShown(grants=[*await folders.grants(visitor(who), node_id)]))

    @api.put("/{node_id}/grants", response_model=GrantsShown, responses=documented(404, 413, 415))
    async def set_grants(node_id: UUID, request: GrantsGiven, who: writes) -> Response:
        """Say whom it is for, all of them at once. For those who manage it, and admins of the org."""
        asker = visitor(who)
        await folders.set_grants(asker, node_id, request.grants, reason=request.reason)
        return as_json(GrantsShown(grants=[*request.grants]))

    return api
