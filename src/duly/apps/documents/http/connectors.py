"""Accounts elsewhere that documents are brought in from."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from duly.apps.documents.folders.job_subjects import private_subject
from duly.apps.documents.http.models import Name, visitor
from duly.apps.documents.imports.providers.remote import Provider
from duly.apps.documents.imports.service import Connector
from duly.apps.documents.imports.target_folders import Keeping
from duly.core.principal import Scope
from duly.features.jobs.models import Accepted
from duly.features.jobs.responses import accepted
from duly.http.params import Reason, ReasonParam, StrictModel
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

_CONNECTORS = "/v1/documents/connectors"
_REF = r"^(env:[A-Z][A-Z0-9_]{0,63}|file:[a-z0-9][a-z0-9_.-]{0,63})$"
RemoteName = Annotated[str, Field(min_length=1, max_length=1000)]


class NewConnector(StrictModel):
    """An account elsewhere, and where its documents go."""

    provider: Provider
    name: Name
    secret_ref: str = Field(
        pattern=_REF, repr=False, description="What its secret is called in your store, never the secret."
    )
    account: str | None = Field(default=None, min_length=1, max_length=255)
    drive: str | None = Field(default=None, pattern="^[A-Za-z0-9!_.-]{1,255}$")
    node_id: UUID | None = Field(default=None, description="The folder; null is the root.")


class ConnectorChange(StrictModel):
    """Whether it may be used."""

    disabled: bool = Field(strict=True)
    reason: Reason


class ConnectorsShown(BaseModel):
    """Connectors by their names."""

    connectors: list[Connector]


class ImportRequest(StrictModel):
    """What is to be brought in."""

    remote_path: str = Field(default="", max_length=1000, description="A folder there; empty is all of it.")
    files: list[RemoteName] = Field(
        default=[], max_length=1000, description="Files of it; none means all that has changed."
    )
    folders: Keeping = Field(
        default="keep",
        description="Whether subfolders become folders here, or everything goes into the connector's own.",
    )


def routes(service: Service) -> APIRouter:
    """Made by admins of the org; used by whoever may write where the documents go."""
    api = APIRouter(prefix=_CONNECTORS, tags=["documents"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    writes = Annotated[Requester, service.allows(Scope.WRITE)]
    administers = Annotated[Requester, service.allows(Scope.ADMIN)]
    connectors, refusals = service.documents.connectors, problem_responses(404, 409, 413, 415)

    @api.get("", response_model=ConnectorsShown, responses=problem_responses())
    async def list_connectors(who: reads) -> Response:
        """Those that bring documents where you may see them, by their names."""
        return json_response(ConnectorsShown(connectors=[*await connectors.list(visitor(who))]))

    @api.post("", status_code=201, response_model=Connector, responses=refusals)
    async def create_connector(request: NewConnector, who: administers) -> Response:
        """A new connector. Its secret need not be there yet."""
        made = await connectors.create(visitor(who), **dict(request))
        return json_response(made, 201, {"location": who.link(f"{_CONNECTORS}/{made.connector_id}")})

    @api.get("/{connector_id}", response_model=Connector, responses=problem_responses(404))
    async def show_connector(connector_id: UUID, who: reads) -> Response:
        """One of them."""
        return json_response(await connectors.get(visitor(who), connector_id))

    @api.patch("/{connector_id}", response_model=Connector, responses=problem_responses(404, 413, 415))
    async def change_connector(connector_id: UUID, request: ConnectorChange, who: administers) -> Response:
        """Disable it, or enable it again."""
        set_to = connectors.disable if request.disabled else connectors.enable
        return json_response(await set_to(visitor(who), connector_id, reason=request.reason))

    @api.delete("/{connector_id}", status_code=204, response_class=Response, responses=problem_responses(404))
    async def remove_connector(connector_id: UUID, reason: ReasonParam, who: administers) -> Response:
        """Forget it. The documents stay, and so does the secret."""
        await connectors.remove(visitor(who), connector_id, reason=reason)
        return Response(status_code=204)

    @api.post("/{connector_id}/import", status_code=202, response_model=Accepted, responses=refusals)
    async def begin_import(connector_id: UUID, request: ImportRequest, who: writes) -> Response:
        """Have a folder brought in, or files of it; only what has changed since."""
        asker = visitor(who)
        handle = await connectors.begin_import(
            asker,
            connector_id,
            remote_path=request.remote_path,
            files=request.files,
            folders=request.folders,
        )
        return accepted(who, handle.job_id, private_subject(asker), replayed=not handle.created)

    return api
