"""Members of the org: who belongs to it, and what they are there."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.keys import check_scopes
from duly.http.params import After, Because, Limit, Shown, Why
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.model.access import SCOPES_OF, Role, Scope

UserId = Annotated[
    str, Path(min_length=1, max_length=500, description="As the issuer of their tokens knows them.")
]


class Membership(Why):
    """What somebody is to be."""

    role: Role


class MemberShown(Shown):
    """Somebody who belongs to the org."""

    user_id: str
    role: Role
    created_at: datetime


class MembersShown(Shown):
    """Some members; `after` asks for those that follow, and is null at the end."""

    members: list[MemberShown]
    after: str | None


def routes(service: Service) -> APIRouter:
    """For those who look after the org. Ids may have slashes; encode them in paths."""
    api = APIRouter(prefix="/v1/members", tags=["members"], route_class=StrictRoute)
    administers = Annotated[Caller, service.allows(Scope.ADMIN)]

    @api.get("", response_model=MembersShown, responses=documented())
    async def list_members(who: administers, limit: Limit = 50, after: After = None) -> Response:
        """The members of the org, by their ids."""
        page = await service.members.list(who.org_id, limit=limit, after=after)
        return as_json(MembersShown.model_validate(page))

    @api.get("/{user_id:path}", response_model=MemberShown, responses=documented(404))
    async def show(user_id: UserId, who: administers) -> Response:
        """One member."""
        return as_json(MemberShown.model_validate(await service.members.get(who.org_id, user_id)))

    @api.put("/{user_id:path}", response_model=MemberShown, responses=documented(404, 413, 415))
    async def put(user_id: UserId, request: Membership, who: administers) -> Response:
        """Make somebody a member, or change their role; to nothing that one may not do oneself."""
        check_scopes(who, SCOPES_OF[request.role])
        member = await service.members.set(
            who.org_id, user_id, request.role, actor=who.actor, reason=request.reason
        )
        return as_json(MemberShown.model_validate(member))

    @api.delete("/{user_id:path}", status_code=204, response_class=Response, responses=documented(404))
    async def remove(user_id: UserId, reason: Because, who: administers) -> Response:
        """End a membership."""
        await service.members.remove(who.org_id, user_id, actor=who.actor, reason=reason)
        return Response(status_code=204)

    return api
