"""Protection against cross-site requests (CSRF): browsers send cookies with the requests of any site."""

from __future__ import annotations

import hashlib
import hmac

from fastapi import Request

from duly.features.api_keys.service import unknown_credential

CSRF_HEADER = "x-csrf-token"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_SAME_ORIGIN = frozenset({"same-origin", "none"})


def csrf_token(session: str) -> str:
    """Return the CSRF token of a session token; it reveals nothing about that one."""
    return hmac.new(session.encode(), b"duly csrf", hashlib.sha256).hexdigest()


def check_csrf(request: Request, session: str) -> None:
    """Raise unless a change comes from Duly's own pages."""
    if request.method in _SAFE_METHODS:
        return
    check_same_origin(request)
    token = request.scope.get("duly.csrf") or request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(csrf_token(session).encode(), token.encode("utf-8", "replace")):
        raise unknown_credential()


def check_same_origin(request: Request) -> None:
    """Raise if the browser says that another site sent the request."""
    if request.headers.get("sec-fetch-site", "none") not in _SAME_ORIGIN:
        raise unknown_credential()
