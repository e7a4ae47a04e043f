"""Routes of sessions: a browser sends its key or token once, and a cookie from then on."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from duly.core.errors import Unauthenticated
from duly.core.principal import Scope
from duly.features.sessions.service import NewSession, OpenSession
from duly.http.authentication import cookies, csrf
from duly.http.params import StrictModel
from duly.http.problems import problem_responses
from duly.http.responses import json_response, list_model, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute


class SignInRequest(StrictModel):
    """A credential."""

    credential: str = Field(
        min_length=1, max_length=16_384, repr=False, description="An API key, or a token."
    )


NewSessionResponse = response_model(
    NewSession, exclude=("token",), csrf_token=(str, f"Send it as `{csrf.CSRF_HEADER}` with every change.")
)
SessionResponse = response_model(
    OpenSession,
    "Session",
    descriptions={
        "name": "The name in the audit trail; it is no credential.",
        "current": "Whether the request came with this session.",
    },
)
IdentityResponse = list_model(
    "sessions", SessionResponse, "Identity", org_id=UUID, actor_type=str, actor_id=str, scopes=list[Scope]
)


def routes(service: Service) -> APIRouter:
    """Return the routes of sessions."""
    api = APIRouter(prefix="/session", tags=["session"], route_class=StrictRoute)

    @api.post(
        "",
        status_code=201,
        response_model=NewSessionResponse,
        responses=problem_responses(413, 415),
        openapi_extra={"security": []},
    )
    async def log_in(body: SignInRequest, request: Request) -> Response:
        """Sign in: a cookie replaces the credential for 12 hours, or until that expires.

        For an operator of the installation, for one hour.
        """
        if cookies.cookie_name(request, secure=service.secure) is None:
            raise cookies.https_required()
        csrf.check_same_origin(request)
        service.sign_in_throttle.admit(request)
        try:
            principal = await service.authenticator.authenticate(body.credential.strip())
        except Unauthenticated:
            service.sign_in_throttle.record_failure(request)
            raise
        session = await service.sessions.open(principal)
        csrf_token = csrf.csrf_token(session.token)
        response = json_response(
            NewSessionResponse(expires_at=session.expires_at, csrf_token=csrf_token), 201
        )
        cookies.set_cookie(response, request, session.token, secure=service.secure)
        return response

    @api.get("", response_model=IdentityResponse, responses=problem_responses())
    async def who_am_i(request: Request) -> dict[str, object]:
        """Get the principal of the credential, its scopes, and its sessions."""
        principal = await service.authenticator.principal(request)
        service.rate_limit.admit(request, principal)
        token = cookies.session_token(request, secure=service.secure)
        return {
            "org_id": principal.org_id,
            "actor_type": principal.actor.type.value,
            "actor_id": principal.actor.id,
            "scopes": [scope for scope in Scope if principal.may(scope)],
            "sessions": await service.sessions.list(principal, token),
        }

    @api.delete("", status_code=204, response_class=Response, responses=problem_responses())
    async def log_out(
        request: Request,
        all_sessions: Annotated[
            bool,
            Query(alias="everywhere", description="End all sessions of the same key, member or operator."),
        ] = False,
    ) -> Response:
        """Sign out: end the session of the cookie."""
        await service.authenticator.sign_out(request, all_sessions=all_sessions)
        response = Response(status_code=204)
        cookies.clear_cookie(response, request, secure=service.secure)
        return response

    return api
