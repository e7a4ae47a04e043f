"""Routes of the members of the org and their roles."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from duly.core.principal import ROLE_SCOPES, Role, Scope
from duly.features.api_keys.routes import check_scopes
from duly.features.members.service import Member, MemberPage
from duly.http.params import After, PageSize, ReasonBody, ReasonParam
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import page_model, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

UserId = Annotated[
    str, Path(min_length=1, max_length=500, description="The id of the user at the issuer of the tokens.")
]
MemberResponse = response_model(Member)
MemberPageResponse = page_model("members", MemberResponse)


class Membership(ReasonBody):
    """The role of a member."""

    role: Role


def routes(service: Service) -> APIRouter:
    """Return the routes of members. Ids may contain slashes; encode them in paths."""
    api = APIRouter(prefix="/v1/members", tags=["members"], route_class=StrictRoute)
    administers = Annotated[Requester, service.allows(Scope.ADMIN)]
    members = service.members

    @api.get("", response_model=MemberPageResponse, responses=problem_responses())
    async def list_members(requester: administers, limit: PageSize = 50, after: After = None) -> MemberPage:
        """List the members of the org by id."""
        return await members.list(requester.org_id, limit=limit, after=after)

    @api.get("/{user_id:path}", response_model=MemberResponse, responses=problem_responses(404))
    async def show(user_id: UserId, requester: administers) -> Member:
        """Get a member."""
        return await members.get(requester.org_id, user_id)

    @api.put("/{user_id:path}", response_model=MemberResponse, responses=problem_responses(404, 413, 415))
    async def put(user_id: UserId, request: Membership, requester: administers) -> Member:
        """Add a member or change the role, to one without scopes that the requester lacks."""
        check_scopes(requester, ROLE_SCOPES[request.role])
        return await members.set(
            requester.org_id, user_id, request.role, actor=requester.actor, reason=request.reason
        )

    @api.delete("/{user_id:path}", status_code=204, response_class=Response, responses=problem_responses(404))
    async def remove(user_id: UserId, reason: ReasonParam, requester: administers) -> None:
        """Remove a member."""
        await members.remove(requester.org_id, user_id, actor=requester.actor, reason=reason)

    return api
