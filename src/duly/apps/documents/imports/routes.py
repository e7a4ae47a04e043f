"""Routes of connectors, and of the imports through them."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from duly.apps.documents.folders.job_subjects import private_subject
from duly.apps.documents.imports.models import Connector, FolderMode
from duly.apps.documents.imports.providers.remote import Provider
from duly.apps.documents.request_models import Name, document_principal
from duly.core.principal import Scope
from duly.features.jobs.models import Accepted
from duly.features.jobs.responses import accepted
from duly.http.params import Reason, ReasonParam, StrictModel
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response, list_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

_CONNECTORS = "/v1/documents/connectors"
_REF_PATTERN = r"^(env:[A-Z][A-Z0-9_]{0,63}|file:[a-z0-9][a-z0-9_.-]{0,63})$"
RemoteName = Annotated[str, Field(min_length=1, max_length=1000)]


class NewConnector(StrictModel):
    """A connector to create."""

    provider: Provider
    name: Name
    secret_ref: str = Field(
        pattern=_REF_PATTERN,
        repr=False,
        description="The reference of its secret, never the secret itself.",
    )
    account: str | None = Field(default=None, min_length=1, max_length=255)
    drive: str | None = Field(default=None, pattern="^[A-Za-z0-9!_.-]{1,255}$")
    node_id: UUID | None = Field(default=None, description="The folder for its documents; null is the root.")


class ConnectorUpdate(StrictModel):
    """The state of a connector."""

    disabled: bool = Field(strict=True)
    reason: Reason


class ImportRequest(StrictModel):
    """The remote folder and files to import."""

    remote_path: str = Field(default="", max_length=1000, description="The remote folder; empty is the root.")
    files: list[RemoteName] = Field(
        default=[], max_length=1000, description="Files of the folder; none means all changed files."
    )
    folders: FolderMode = Field(
        default="keep",
        description="`keep` recreates remote folders below the connector's folder; `flat` does not.",
    )


ConnectorList = list_model("connectors", Connector, "Connectors")


def routes(service: Service) -> APIRouter:
    """Return the routes of connectors: admins create them, principals with write access import."""
    api = APIRouter(prefix=_CONNECTORS, tags=["documents"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    writes = Annotated[Requester, service.allows(Scope.WRITE)]
    administers = Annotated[Requester, service.allows(Scope.ADMIN)]
    connectors, refusals = service.documents.connectors, problem_responses(404, 409, 413, 415)

    @api.get("", response_model=ConnectorList, responses=problem_responses())
    async def list_connectors(requester: reads) -> dict[str, Sequence[Connector]]:
        """List the connectors whose folders you may see, by name."""
        return {"connectors": await connectors.list(document_principal(requester))}

    @api.post("", status_code=201, response_model=Connector, responses=refusals)
    async def create_connector(request: NewConnector, requester: administers) -> Response:
        """Create a connector. Its secret need not exist yet."""
        connector = await connectors.create(document_principal(requester), **dict(request))
        location = {"location": requester.link(f"{_CONNECTORS}/{connector.connector_id}")}
        return json_response(connector, 201, location)

    @api.get("/{connector_id}", response_model=Connector, responses=problem_responses(404))
    async def show_connector(connector_id: UUID, requester: reads) -> Connector:
        """Get a connector."""
        return await connectors.get(document_principal(requester), connector_id)

    @api.patch("/{connector_id}", response_model=Connector, responses=problem_responses(404, 413, 415))
    async def change_connector(
        connector_id: UUID, request: ConnectorUpdate, requester: administers
    ) -> Connector:
        """Disable a connector, or enable it again."""
        update = connectors.disable if request.disabled else connectors.enable
        return await update(document_principal(requester), connector_id, reason=request.reason)

    @api.delete("/{connector_id}", status_code=204, response_class=Response, responses=problem_responses(404))
    async def remove_connector(connector_id: UUID, reason: ReasonParam, requester: administers) -> None:
        """Delete a connector. Its documents and its secret stay."""
        await connectors.remove(document_principal(requester), connector_id, reason=reason)

    @api.post("/{connector_id}/import", status_code=202, response_model=Accepted, responses=refusals)
    async def begin_import(connector_id: UUID, request: ImportRequest, requester: writes) -> Response:
        """Import a remote folder, or files of it; only what has changed since the last import."""
        principal = document_principal(requester)
        handle = await connectors.begin_import(principal, connector_id, **dict(request))
        return accepted(requester, handle.job_id, private_subject(principal), replayed=not handle.created)

    return api
