"""The orgs of the installation, for those who look after it: made, renamed, suspended, given a key."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.keys import KeyMade, KeyRequest, key_made
from duly.http.org import OrgShown
from duly.http.params import After, Limit, Shown, Text, Why
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.model.access import SCOPES_OF, Role, Scope
from duly.model.errors import ContractError
from duly.store.orgs import Org, OrgStatus


class NewOrg(Why):
    """An org to be made; without an id it gets one."""

    org_id: UUID | None = None
    name: Text


class OrgChange(Why):
    """One thing that is to be different: its name, or whether it is worked for."""

    name: Text | None = None
    status: OrgStatus | None = None


class FirstKey(KeyRequest):
    """A key for those who look after an org; it may do everything there, unless told otherwise."""

    scopes: list[Scope] = Field(default=sorted(SCOPES_OF[Role.ADMIN]), min_length=1, max_length=len(Scope))


class OrgsShown(Shown):
    """Some orgs; `after` asks for those that follow, and is null at the end."""

    orgs: list[OrgShown]
    after: str | None


def routes(service: Service) -> APIRouter:
    """Each change is put down in the audit trail of the org itself."""
    api = APIRouter(prefix="/v1/platform/orgs", tags=["platform"], route_class=StrictRoute)
    runs = Annotated[Caller, service.allows(Scope.PLATFORM)]

    @api.get("", response_model=OrgsShown, responses=documented())
    async def list_orgs(who: runs, limit: Limit = 50, after: After = None) -> Response:
        """Every org, also those that are suspended and the system's own."""
        return as_json(OrgsShown.model_validate(await service.orgs.list(limit=limit, after=after)))

    @api.post("", status_code=201, response_model=OrgShown, responses=documented(409, 413, 415))
    async def create_org(request: NewOrg, who: runs) -> Response:
        """Make an org. Asked again with its id, it changes nothing."""
        made = await service.orgs.create(request.org_id, request.name, actor=who.actor, reason=request.reason)
        headers = {"location": who.link(f"/v1/platform/orgs/{made.org_id}")}
        return as_json(OrgShown.model_validate(made), 201, headers)

    @api.get("/{org_id}", response_model=OrgShown, responses=documented(404))
    async def show_org(org_id: UUID, who: runs) -> Response:
        """One org."""
        return as_json(OrgShown.model_validate(await service.orgs.get(org_id)))

    @api.patch("/{org_id}", response_model=OrgShown, responses=documented(404, 413, 415))
    async def change_org(org_id: UUID, request: OrgChange, who: runs) -> Response:
        """Rename an org, suspend it or resume it; suspended, it lets nobody in and takes nothing on."""
        return as_json(OrgShown.model_validate(await _changed(service, who, org_id, request)))

    @api.post(
        "/{org_id}/keys", status_code=201, response_model=KeyMade, responses=documented(404, 409, 413, 415)
    )
    async def create_key(org_id: UUID, request: FirstKey, who: runs) -> Response:
        """Make a key of an org, for those who look after it."""
        return key_made(who, await service.keys.create(org_id, actor=who.actor, **dict(request)))

    return api


async def _changed(service: Service, who: Caller, org_id: UUID, request: OrgChange) -> Org:
    if (request.name is None) == (request.status is None):
        raise ContractError("say one of name and status", field="name", fix="change one thing at a time")
    if request.name is not None:
        return await service.orgs.rename(org_id, request.name, actor=who.actor, reason=request.reason)
    become = service.orgs.suspend if request.status is OrgStatus.SUSPENDED else service.orgs.resume
    return await become(org_id, actor=who.actor, reason=request.reason)
