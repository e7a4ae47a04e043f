"""Logging in and out: a browser shows its key or token once, and a cookie from then on."""

import time
from collections import OrderedDict
from datetime import datetime

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from duly.http import cookies
from duly.http.answers import as_json
from duly.http.problems import documented
from duly.http.rates import TooManyRequests
from duly.http.service import Service
from duly.http.shapes import Strict
from duly.http.strict import StrictRoute
from duly.model.errors import Unauthenticated

_PER_SECOND, _BURST, _MOST = 1.0, 20.0, 10_000
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


class LogIns:
    """How often an address may fail to log in: whoever guesses must not keep the database busy."""

    def __init__(self) -> None:
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def admit(self, address: str) -> None:
        """Raise if it has failed too often."""
        if self._filled(address) < 1:
            raise TooManyRequests(1)

    def failed(self, address: str) -> None:
        """Remember it for a while."""
        self._left[address] = (self._filled(address) - 1, time.monotonic())
        while len(self._left) > _MOST:
            self._left.popitem(last=False)

    def _filled(self, address: str) -> float:
        left, at = self._left.get(address, (_BURST, 0.0))
        return min(_BURST, left + (time.monotonic() - at) * _PER_SECOND)


def routes(service: Service) -> APIRouter:
    """In and out."""
    api = APIRouter(prefix="/session", tags=["session"], route_class=StrictRoute)
    log_ins = LogIns()

    @api.post(
        "",
        status_code=201,
        response_model=LoggedIn,
        responses=documented(413, 415),
        openapi_extra=_NO_CREDENTIAL,
    )
    async def log_in(said: LogIn, request: Request) -> Response:
        """Log in: a cookie stands for the credential from now on, for 12 hours or until that ends."""
        if cookies.cookie_name(request, secure=service.secure) is None:
            raise cookies.no_plain_http()
        cookies.check_same_origin(request)
        address = request.client.host if request.client else ""
        log_ins.admit(address)
        try:
            who = await service.authenticator.believe(said.credential.strip())
        except Unauthenticated:
            log_ins.failed(address)
            raise
        made = await service.sessions.open(who)
        shown = LoggedIn(expires_at=made.expires_at, csrf_token=cookies.csrf(made.token))
        answer = as_json(shown, 201)
        cookies.set_cookie(answer, request, made.token, secure=service.secure)
        return answer

    @api.delete("", status_code=204, response_class=Response, responses=documented())
    async def log_out(request: Request) -> Response:
        """Log out: the cookie is worth nothing from now on."""
        await service.authenticator.log_out(request)
        answer = Response(status_code=204)
        cookies.clear_cookie(answer, request, secure=service.secure)
        return answer

    return api
