"""Sign-in pages: with a key, or with the identity provider and back to the requested page."""

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
CALLBACK = "/login/back"
# A path of this host: browsers read two slashes, or a backslash, as the beginning of another host.
_OWN_PATH = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]{0,2000}")
_MAX_DETAIL_LENGTH = 300
NextPath = Annotated[str, Query(alias="next")]


class SignInPages:
    """The sign-in page, the redirect to the identity provider, and its callback."""

    def __init__(self, service: Service, pages: Pages) -> None:
        self._service = service
        self._pages = pages
        self._secure = service.secure
        self._client = service.options.sign_in
        self._flow = SignInFlow(service.authenticator.tokens, self._client) if self._client else None

    async def login(self, request: Request, next_path: NextPath = HOME) -> Response:
        """Show the sign-in form; over plain HTTP, where a key could be intercepted, a warning instead."""
        if self._is_insecure(request):
            return self._pages.page(request, "insecure")
        path = own_path(next_path)
        return self._pages.page(request, "login", next=path, sso=self._sso(request, path))

    async def start(self, request: Request, next_path: NextPath = HOME) -> Response:
        """Redirect to the identity provider."""
        if self._flow is None:
            return self._pages.page(request, "missing", status_code=404)
        if self._is_insecure(request):
            return self._pages.page(request, "insecure")
        attempt = SignInAttempt.start(own_path(next_path))
        try:
            url = await self._flow.authorization_url(attempt, self._redirect_uri(request))
        except ProviderUnavailable:
            return self._failed(request, 503, "signin.unreachable", attempt.next_path)
        response = RedirectResponse(url, 303)
        attempt.save(response, request, secure=self._secure)
        return response

    async def callback(self, request: Request) -> Response:
        """Finish the sign-in with the code or the error of the provider; the attempt ends either way."""
        if self._flow is None:
            return self._pages.page(request, "missing", status_code=404)
        response = await self._finish(request, self._flow)
        sign_in.clear_attempt(response, request, secure=self._secure)
        return response

    async def _finish(self, request: Request, flow: SignInFlow) -> Response:
        attempt, params = SignInAttempt.from_request(request, secure=self._secure), request.query_params
        if attempt is None or not flow.matches(attempt, request):
            # Such a link can be forged: nothing of its parameters is shown.
            return self._failed(request, 400, "signin.stale", HOME)
        next_path = own_path(attempt.next_path)
        if "error" in params:
            message_id = "signin.denied" if params["error"] == "access_denied" else "signin.refused"
            detail = f"{params['error']}: {params.get('error_description', '')}".strip(": ")
            return self._failed(request, 403, message_id, next_path, detail)
        throttle = self._service.sign_in_throttle
        try:
            throttle.admit(request)
            return await self._open_session(request, flow, attempt, next_path)
        except TooManyRequests as error:
            response = self._failed(request, 429, "login.wait", next_path)
            response.headers["retry-after"] = str(error.retry_after)
            return response
        except ProviderUnavailable:
            throttle.record_failure(request)
            return self._failed(request, 503, "signin.unreachable", next_path)
        except Unauthenticated:
            throttle.record_failure(request)
            return self._failed(request, 403, "signin.not_verified", next_path)

    async def _open_session(
        self, request: Request, flow: SignInFlow, attempt: SignInAttempt, next_path: str
    ) -> Response:
        code = request.query_params.get("code", "")
        claims = await flow.claims(attempt, code, self._redirect_uri(request))
        try:
            principal = await self._service.authenticator.of_id_token(claims)
        except Unauthenticated:
            return self._failed(request, 403, "signin.unknown", next_path, claims.user_id)
        session = await self._service.sessions.open(principal)
        response = RedirectResponse(self._service.path(request) + next_path, 303)
        cookies.set_cookie(response, request, session.token, secure=self._secure)
        return response

    def _is_insecure(self, request: Request) -> bool:
        return cookies.cookie_name(request, secure=self._secure) is None

    def _redirect_uri(self, request: Request) -> str:
        """Return the callback URL; both requests to the provider must name the same one."""
        own = f"{request.url.scheme}://{request.url.netloc}{request.scope.get('root_path', '')}"
        return (self._service.options.public_url or own) + CALLBACK

    def _sso(self, request: Request, next_path: str) -> dict[str, str] | None:
        if self._client is None:
            return None
        query = urlencode({"next": next_path})
        return {"url": f"{self._service.path(request)}/login/start?{query}", "label": self._client.label}

    def _failed(
        self, request: Request, status: int, message_id: str, next_path: str, detail: str = ""
    ) -> Response:
        retry = f"{self._service.path(request)}/login?{urlencode({'next': next_path})}"
        message = messages(language_of(request)).text(message_id)
        detail = re.sub(r"[^ -~\u00a0-\ud7ff]", " ", detail)[:_MAX_DETAIL_LENGTH]
        return self._pages.page(
            request, "signin", status_code=status, message=message, detail=detail, retry=retry
        )


def own_path(path: str) -> str:
    """Return the path if it belongs to this host, else the home page."""
    return path if _OWN_PATH.fullmatch(path) else HOME
