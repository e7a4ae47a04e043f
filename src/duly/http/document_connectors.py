"""Accounts elsewhere that documents are brought in from."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from duly.documents.access import private_to
from duly.documents.imports.connectors import Connector
from duly.documents.imports.places import Keeping
from duly.documents.imports.remote import Provider
from duly.http.answers import accepted, as_json
from duly.http.caller import Caller
from duly.http.document_shapes import Name, visitor
from duly.http.params import Because, Reason
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.shapes import Accepted, Strict
from duly.http.strict import StrictRoute
from duly.model.access import Scope

_CONNECTORS = "/v1/documents/connectors"
_REF = r"^(env:[A-Z][A-Z0-9_]{0,63}|file:[a-z0-9][a-z0-9_.-]{0,63})$"
RemoteName = Annotated[str, Field(min_length=1, max_length=1000)]


class NewConnector(Strict):
    """An account elsewhere, and where its documents go."""

    provider: Provider
    name: Name
    secret_ref: str = Field(
        pattern=_REF, repr=False, description="What its secret is called in your store, never the secret."
    )
    account: str | None = Field(default=None, min_length=1, max_length=255)
    drive: str | None = Field(default=None, pattern="^[A-Za-z0-9!_.-]{1,255}$")
    node_id: UUID | None = Field(default=None, description="The folder; null is the root.")


class ConnectorChange(Strict):
    """Whether it may be used."""

    disabled: bool = Field(strict=True)
    reason: Reason


class ConnectorsShown(BaseModel):
    """Connectors by their names."""

    connectors: list[Connector]


class ImportRequest(Strict):
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
    reads = Annotated[Caller, service.allows(Scope.READ)]
    writes = Annotated[Caller, service.allows(Scope.WRITE)]
    administers = Annotated[Caller, service.allows(Scope.ADMIN)]
    connectors, refusals = service.documents.connectors, documented(404, 409, 413, 415)

    @api.get("", response_model=ConnectorsShown, responses=documented())
    async def list_connectors(who: reads) -> Response:
        """Those that bring documents where you may see them, by their names."""
        return as_json(ConnectorsShown(connectors=[*await connectors.list(visitor(who))]))

    @api.post("", status_code=201, response_model=Connector, responses=refusals)
    async def create_connector(request: NewConnector, who: administers) -> Response:
        """A new connector. Its secret need not be there yet."""
        made = await connectors.create(visitor(who), **dict(request))
        return as_json(made, 201, {"location": who.link(f"{_CONNECTORS}/{made.connector_id}")})

    @api.get("/{connector_id}", response_model=Connector, responses=documented(404))
    async def show_connector(connector_id: UUID, who: reads) -> Response:
        """One of them."""
        return as_json(await connectors.get(visitor(who), connector_id))

    @api.patch("/{connector_id}", response_model=Connector, responses=documented(404, 413, 415))
    async def change_connector(connector_id: UUID, request: ConnectorChange, who: administers) -> Response:
        """Disable it, or enable it again."""
        set_to = connectors.disable if request.disabled else connectors.enable
        return as_json(await set_to(visitor(who), connector_id, reason=request.reason))

    @api.delete("/{connector_id}", status_code=204, response_class=Response, responses=documented(404))
    async def remove_connector(connector_id: UUID, reason: Because, who: administers) -> Response:
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
        return accepted(who, handle.job_id, private_to(asker), replayed=not handle.created)

    return api
