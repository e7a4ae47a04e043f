"""Logging in and out: a browser shows its key or token once, and a cookie from then on."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from duly.http import cookies
from duly.http.answers import as_json
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.shapes import Strict
from duly.http.strict import StrictRoute
from duly.model.access import Scope
from duly.model.errors import Unauthenticated

_NO_CREDENTIAL: dict[str, object] = {"security": []}


class LogIn(Strict):
    """Who wants to come in."""

    credential: str = Field(
        min_length=1, max_length=16_384, repr=False, description="An API key, or a token."
    )


class LoggedIn(BaseModel):
    """The cookie is in the headers."""

    expires_at: datetime
    csrf_token: str = Field(description=f"To be sent as `{cookies.CSRF_HEADER}` with every change.")


class Shown(BaseModel):
    """A log-in that is not over."""

    name: str = Field(description="As in the audit trail; it opens nothing.")
    created_at: datetime
    expires_at: datetime
    current: bool = Field(description="Whether it is the one that was asked with.")


class WhoAmI(BaseModel):
    """Whoever asks, and the log-ins that stand for the same key, member or operator."""

    org_id: UUID
    actor_type: str
    actor_id: str
    scopes: list[Scope]
    sessions: list[Shown]


def routes(service: Service) -> APIRouter:
    """In and out."""
    api = APIRouter(prefix="/session", tags=["session"], route_class=StrictRoute)

    @api.post(
        "",
        status_code=201,
        response_model=LoggedIn,
        responses=documented(413, 415),
        openapi_extra=_NO_CREDENTIAL,
    )
    async def log_in(said: LogIn, request: Request) -> Response:
        """Log in: a cookie stands for the credential from now on, for 12 hours or until that ends.

        Of a token for the installation, for an hour.
        """
        if cookies.cookie_name(request, secure=service.secure) is None:
            raise cookies.no_plain_http()
        cookies.check_same_origin(request)
        service.log_ins.admit(request)
        try:
            who = await service.authenticator.believe(said.credential.strip())
        except Unauthenticated:
            service.log_ins.failed(request)
            raise
        made = await service.sessions.open(who)
        shown = LoggedIn(expires_at=made.expires_at, csrf_token=cookies.csrf(made.token))
        answer = as_json(shown, 201)
        cookies.set_cookie(answer, request, made.token, secure=service.secure)
        return answer

    @api.get("", response_model=WhoAmI, responses=documented())
    async def who_am_i(request: Request) -> Response:
        """Who is asking, what they may do, and where else they are logged in."""
        who = await service.authenticator.principal(request)
        service.rates.admit(request, who)
        found = await service.sessions.list(who, cookies.token_in(request, secure=service.secure))
        return as_json(
            WhoAmI(
                org_id=who.org_id,
                actor_type=who.actor.type.value,
                actor_id=who.actor.id,
                scopes=[scope for scope in Scope if who.may(scope)],
                sessions=[Shown.model_validate(one, from_attributes=True) for one in found],
            )
        )

    @api.delete("", status_code=204, response_class=Response, responses=documented())
    async def log_out(
        request: Request,
        everywhere: Annotated[
            bool, Query(description="End all log-ins that stand for the same key, member or operator.")
        ] = False,
    ) -> Response:
        """Log out: the cookie is worth nothing from now on."""
        await service.authenticator.log_out(request, everywhere=everywhere)
        answer = Response(status_code=204)
        cookies.clear_cookie(answer, request, secure=service.secure)
        return answer

    return api
