"""The session cookie of a browser."""

from __future__ import annotations

import ipaddress
import re

from fastapi import Request
from starlette.responses import Response

from duly.core.errors import Forbidden
from duly.features.sessions.service import SESSION_LIFETIME

SECURE, PLAIN = "__Host-duly", "duly"
_SESSION_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def session_token(request: Request, *, secure: bool) -> str | None:
    """Return the session token of a request. A cookie that another host may have set is not read."""
    value = request.cookies.get(cookie_name(request, secure=secure) or "", "")
    return value if _SESSION_TOKEN.fullmatch(value) else None


def cookie_name(request: Request, *, secure: bool) -> str | None:
    """Return the name of the session cookie; None over plain HTTP, where it could be read on the way."""
    if secure or request.url.scheme == "https":
        return SECURE
    return PLAIN if _is_loopback(request.url.hostname or "") else None


def set_cookie(response: Response, request: Request, token: str, *, secure: bool) -> None:
    """Set the session cookie."""
    name = cookie_name(request, secure=secure)
    if name is None:
        raise https_required()
    response.set_cookie(
        name,
        token,
        max_age=int(SESSION_LIFETIME.total_seconds()),
        secure=name == SECURE,
        httponly=True,
        samesite="lax",
    )


def clear_cookie(response: Response, request: Request, *, secure: bool) -> None:
    """Delete the session cookie."""
    name = cookie_name(request, secure=secure) or SECURE
    response.delete_cookie(name, secure=name == SECURE, httponly=True, samesite="lax")


def https_required() -> Forbidden:
    """Return the error of a sign-in over plain HTTP."""
    return Forbidden(
        "signing in needs https", field="scheme", fix="use https, or localhost on the machine of the service"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
