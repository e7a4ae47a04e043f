"""Logging in: with a key, or at the identity provider and back to where they wanted to go."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query, Request
from starlette.responses import RedirectResponse, Response

from duly.core.errors import Unauthenticated
from duly.http.authentication import cookies, sign_in
from duly.http.authentication.identity_provider import ProviderUnavailable
from duly.http.authentication.sign_in import SignInAttempt, SignInFlow
from duly.http.rate_limit import TooManyRequests
from duly.http.service import Service
from duly.i18n import messages
from duly.pages.render import Pages, language_of

HOME = "/submit"
BACK = "/login/back"
# A path of this host: browsers read two slashes, or a backslash, as the beginning of another.
_OWN_PATH = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]{0,2000}")
_LONGEST = 300
Then = Annotated[str, Query(alias="next")]


class SigningIn:
    """The page of the log-in, and the way to the provider and back."""

    def __init__(self, service: Service, pages: Pages) -> None:
        self._service = service
        self._pages = pages
        self._secure = service.secure
        self._as = service.options.sign_in
        self._door = SignInFlow(service.authenticator.tokens, self._as) if self._as else None

    async def login(self, request: Request, then: Then = HOME) -> Response:
        """The page, if nobody can listen."""
        if self._is_open(request):
            return self._pages.page(request, "insecure")
        there = own_path(then)
        return self._pages.page(request, "login", next=there, sso=self._sso(request, there))

    async def start(self, request: Request, then: Then = HOME) -> Response:
        """To the provider."""
        if self._door is None:
            return self._pages.page(request, "missing", status_code=404)
        if self._is_open(request):
            return self._pages.page(request, "insecure")
        way = SignInAttempt.start(own_path(then))
        try:
            there = await self._door.authorization_url(way, self._back(request))
        except ProviderUnavailable:
            return self._failed(request, 503, "signin.unreachable", way.next_path)
        answer = RedirectResponse(there, 303)
        way.save(answer, request, secure=self._secure)
        return answer

    async def back(self, request: Request) -> Response:
        """From the provider, with a code or with what is wrong; the way is forgotten either way."""
        if self._door is None:
            return self._pages.page(request, "missing", status_code=404)
        answer = await self._came(request, self._door)
        sign_in.clear_attempt(answer, request, secure=self._secure)
        return answer

    async def _came(self, request: Request, door: SignInFlow) -> Response:
        way, given = SignInAttempt.from_request(request, secure=self._secure), request.query_params
        if way is None or not door.matches(way, request):
            # Anybody can make a link to here: nothing of what it says is shown.
            return self._failed(request, 400, "signin.stale", HOME)
        then = own_path(way.next_path)
        if "error" in given:
            kind = "signin.denied" if given["error"] == "access_denied" else "signin.refused"
            said = f"{given['error']}: {given.get('error_description', '')}".strip(": ")
            return self._failed(request, 403, kind, then, said)
        try:
            self._service.sign_in_throttle.admit(request)
            return await self._let_in(request, door, way, then)
        except TooManyRequests as error:
            slow = self._failed(request, 429, "login.wait", then)
            slow.headers["retry-after"] = str(error.retry_after)
            return slow
        except ProviderUnavailable:
            self._service.sign_in_throttle.record_failure(request)
            return self._failed(request, 503, "signin.unreachable", then)
        except Unauthenticated:
            self._service.sign_in_throttle.record_failure(request)
            return self._failed(request, 403, "signin.not_verified", then)

    async def _let_in(self, request: Request, door: SignInFlow, way: SignInAttempt, then: str) -> Response:
        claims = await door.claims(way, request.query_params.get("code", ""), self._back(request))
        try:
            who = await self._service.authenticator.of_id_token(claims)
        except Unauthenticated:
            return self._failed(request, 403, "signin.unknown", then, claims.user_id)
        made = await self._service.sessions.open(who)
        answer = RedirectResponse(self._service.path(request) + then, 303)
        cookies.set_cookie(answer, request, made.token, secure=self._secure)
        return answer

    def _is_open(self, request: Request) -> bool:
        return cookies.cookie_name(request, secure=self._secure) is None

    def _back(self, request: Request) -> str:
        """Where the provider sends them: the same address at both ends of the way."""
        here = f"{request.url.scheme}://{request.url.netloc}{request.scope.get('root_path', '')}"
        return (self._service.options.public_url or here) + BACK

    def _sso(self, request: Request, then: str) -> dict[str, str] | None:
        if self._as is None:
            return None
        query = urlencode({"next": then})
        return {"url": f"{self._service.path(request)}/login/start?{query}", "label": self._as.label}

    def _failed(self, request: Request, status: int, why: str, then: str, detail: str = "") -> Response:
        again = f"{self._service.path(request)}/login?{urlencode({'next': then})}"
        said = messages(language_of(request)).text(why)
        detail = re.sub(r"[^ -~\u00a0-\ud7ff]", " ", detail)[:_LONGEST]
        return self._pages.page(request, "signin", status_code=status, why=said, detail=detail, again=again)


def own_path(given: str) -> str:
    """Where they want to go, if it is here; else home."""
    return given if _OWN_PATH.fullmatch(given) else HOME
