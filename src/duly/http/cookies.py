"""The cookie of a browser that has logged in, and the proof that a request is meant by one of our pages."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re

from fastapi import Request
from starlette.responses import Response

from duly.control.keys import unknown_credential
from duly.control.sessions import LASTS
from duly.model.errors import Forbidden

SECURE, PLAIN = "__Host-duly", "duly"
CSRF_HEADER = "x-csrf-token"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OURS = frozenset({"same-origin", "none"})
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def csrf(token: str) -> str:
    """What our pages send with every change: it tells nothing about the token it is made of."""
    return hmac.new(token.encode(), b"duly csrf", hashlib.sha256).hexdigest()


def token_in(request: Request, *, secure: bool) -> str | None:
    """The token of the log-in, if the browser sent one; a cookie that others may have set is not read."""
    given = request.cookies.get(cookie_name(request, secure=secure) or "", "")
    return given if _TOKEN.fullmatch(given) else None


def check_meant(request: Request, token: str) -> None:
    """Raise unless a change comes from one of our own pages: browsers send cookies along for anybody."""
    if request.method in _SAFE_METHODS:
        return
    check_same_origin(request)
    given = request.scope.get("duly.csrf") or request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(csrf(token).encode(), given.encode("utf-8", "replace")):
        raise unknown_credential()


def check_same_origin(request: Request) -> None:
    """Raise if the browser says that another site has sent it."""
    if request.headers.get("sec-fetch-site", "none") not in _OURS:
        raise unknown_credential()


def cookie_name(request: Request, *, secure: bool) -> str | None:
    """What the cookie is called here; None where it would travel in the open."""
    if secure or request.url.scheme == "https":
        return SECURE
    return PLAIN if _is_loopback(request.url.hostname or "") else None


def set_cookie(answer: Response, request: Request, token: str, *, secure: bool) -> None:
    """Have the browser keep the token."""
    name = cookie_name(request, secure=secure)
    if name is None:
        raise no_plain_http()
    answer.set_cookie(
        name, token, max_age=int(LASTS.total_seconds()), secure=name == SECURE, httponly=True, samesite="lax"
    )


def clear_cookie(answer: Response, request: Request, *, secure: bool) -> None:
    """Have the browser forget it."""
    name = cookie_name(request, secure=secure) or SECURE
    answer.delete_cookie(name, secure=name == SECURE, httponly=True, samesite="lax")


def no_plain_http() -> Forbidden:
    """Nobody logs in where everybody can listen."""
    return Forbidden(
        "logging in needs https", field="scheme", fix="use https, or the service's own machine as localhost"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
