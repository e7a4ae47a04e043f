"""Routes of folders and of the grants that give access to them."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict, Field
from starlette.responses import Response

from duly.apps.documents.models import Folder, Grant
from duly.apps.documents.request_models import Name, PartialUpdate, document_principal
from duly.core.principal import Scope
from duly.http.params import Reason, ReasonParam, StrictModel
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response, list_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

_FOLDERS = "/v1/documents/folders"


class NewFolder(StrictModel):
    """A folder to create."""

    name: Name
    parent_id: UUID | None = Field(default=None, description="The parent folder; null is the root.")


class FolderUpdate(PartialUpdate):
    """The changed fields of a folder; the others stay as they are."""

    name: Name | None = None
    parent_id: UUID | None = Field(default=None, description="The new parent folder; null is the root.")


class NewGrant(Grant):
    """The access of a principal to a folder, and to the folders below that have no grants of their own."""

    model_config = ConfigDict(extra="forbid")

    principal: str = Field(
        pattern=r"^(user|api_key):[^\x00-\x1f]+$", max_length=300, examples=["user:u1", "api_key:k1"]
    )


class NewGrants(StrictModel):
    """All grants of a folder; an empty list gives it the access of its parent folder."""

    grants: list[NewGrant] = Field(max_length=200)
    reason: Reason | None = None


FolderList = list_model("folders", Folder, "Folders")
GrantList = list_model("grants", Grant, "Grants")


def routes(service: Service) -> APIRouter:
    """Return the routes of folders; a hidden folder is reported like one that does not exist."""
    api = APIRouter(prefix=_FOLDERS, tags=["documents"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    writes = Annotated[Requester, service.allows(Scope.WRITE)]
    folders, refusals = service.documents.folders, problem_responses(404, 409, 413, 415)

    @api.get("", response_model=FolderList, responses=problem_responses())
    async def list_folders(requester: reads) -> dict[str, Sequence[Folder]]:
        """List all folders that you may see, by path."""
        return {"folders": await folders.list(document_principal(requester))}

    @api.post("", status_code=201, response_model=Folder, responses=refusals)
    async def create_folder(request: NewFolder, requester: writes) -> Response:
        """Create a folder in another one, or in the root."""
        folder = await folders.create(document_principal(requester), request.name, request.parent_id)
        return json_response(folder, 201, {"location": requester.link(f"{_FOLDERS}/{folder.node_id}")})

    @api.get("/{node_id}", response_model=Folder, responses=problem_responses(404))
    async def show_folder(node_id: UUID, requester: reads) -> Folder:
        """Get a folder."""
        return await folders.get(document_principal(requester), node_id)

    @api.patch("/{node_id}", response_model=Folder, responses=refusals)
    async def change_folder(node_id: UUID, request: FolderUpdate, requester: writes) -> Folder:
        """Rename a folder, or move it to another one."""
        return await folders.change(
            document_principal(requester),
            node_id,
            name=request.name,
            move_to=request.parent_id,
            moves="parent_id" in request.model_fields_set,
        )

    @api.delete("/{node_id}", status_code=204, response_class=Response, responses=problem_responses(404, 409))
    async def remove_folder(node_id: UUID, reason: ReasonParam, requester: writes) -> None:
        """Remove an empty folder."""
        await folders.remove(document_principal(requester), node_id, reason=reason)

    @api.get("/{node_id}/grants", response_model=GrantList, responses=problem_responses(404))
    async def show_grants(node_id: UUID, requester: reads) -> dict[str, Sequence[Grant]]:
        """List the grants of a folder; without any, it has the access of its parent folder."""
        return {"grants": await folders.grants(document_principal(requester), node_id)}

    @api.put("/{node_id}/grants", response_model=GrantList, responses=problem_responses(404, 413, 415))
    async def set_grants(node_id: UUID, request: NewGrants, requester: writes) -> dict[str, Any]:
        """Replace the grants of a folder. For principals that manage it, and admins of the org."""
        await folders.set_grants(
            document_principal(requester), node_id, request.grants, reason=request.reason
        )
        return {"grants": request.grants}

    return api
