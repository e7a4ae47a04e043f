"""Logging in at the identity provider: the way there and back, with a code, its proof, a state and a nonce.

Nothing of it is kept here. The browser holds one secret for a few minutes, in a cookie that no script can
read, and everything that must fit together is made of that.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
from typing import NamedTuple, Self
from urllib.parse import urlencode

from fastapi import Request
from starlette.responses import Response

from duly.http import cookies
from duly.http.provider import Provider
from duly.http.tokens import Claims, SignIn, Tokens

_LASTS = 600
_COOKIE = "-way"
_KEPT = re.compile(r"([A-Za-z0-9_-]{43})\.(\d{1,12})\.([A-Za-z0-9_-]{0,4000})")


class Way(NamedTuple):
    """One log-in on its way: what the browser keeps until it is back."""

    secret: str
    begun: int
    then: str
    """Where they wanted to go."""

    @classmethod
    def begin(cls, then: str) -> Self:
        """A new one."""
        return cls(secrets.token_urlsafe(32), int(time.time()), then)

    @classmethod
    def of(cls, request: Request, *, secure: bool) -> Self | None:
        """The one that the browser is on, if that is not too long ago."""
        name = cookies.cookie_name(request, secure=secure)
        kept = _KEPT.fullmatch(request.cookies.get(f"{name}{_COOKIE}", "")) if name else None
        if kept is None or not -_LASTS <= int(kept[2]) - int(time.time()) <= 0:
            return None
        try:
            then = base64.urlsafe_b64decode(kept[3] + "=" * (-len(kept[3]) % 4)).decode()
        except ValueError:
            return None
        return cls(kept[1], int(kept[2]), then)

    def keep(self, answer: Response, request: Request, *, secure: bool) -> None:
        """Have the browser remember it."""
        name = cookies.cookie_name(request, secure=secure)
        if name is None:
            raise cookies.no_plain_http()
        then = base64.urlsafe_b64encode(self.then.encode()).decode().rstrip("=")
        answer.set_cookie(
            f"{name}{_COOKIE}",
            f"{self.secret}.{self.begun}.{then}",
            max_age=_LASTS,
            secure=name == cookies.SECURE,
            httponly=True,
            samesite="lax",
        )

    @property
    def state(self) -> str:
        """Comes back with the code: proves that this browser asked, for that place, at that time."""
        return self._made("state")

    @property
    def nonce(self) -> str:
        """Comes back in the token: proves that it was made for this log-in."""
        return self._made("nonce")

    @property
    def verifier(self) -> str:
        """Shown with the code: proves that whoever has it is who asked for it."""
        return self._made("verifier")

    def _made(self, name: str) -> str:
        said = f"{name} {self.begun} {self.then}".encode()
        return _text(hmac.new(self.secret.encode(), said, hashlib.sha256).digest())


def forget(answer: Response, request: Request, *, secure: bool) -> None:
    """Have the browser forget the way: it is gone once."""
    name = cookies.cookie_name(request, secure=secure) or cookies.SECURE
    answer.delete_cookie(f"{name}{_COOKIE}", secure=name == cookies.SECURE, httponly=True, samesite="lax")


class Door:
    """The door of the provider, as this service knocks there."""

    def __init__(self, tokens: Tokens, sign_in: SignIn) -> None:
        self._tokens = tokens
        self._sign_in = sign_in
        self._provider: Provider = tokens.providers[0]

    async def address(self, way: Way, back: str) -> str:
        """Where the browser is sent; `back` is where it comes back to."""
        place = (await self._provider.places()).authorize
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self._sign_in.client_id,
                "redirect_uri": back,
                "scope": self._sign_in.scopes,
                "state": way.state,
                "nonce": way.nonce,
                "code_challenge": _text(hashlib.sha256(way.verifier.encode()).digest()),
                "code_challenge_method": "S256",
            }
        )
        return f"{place}{'&' if '?' in place else '?'}{query}"

    def answers(self, way: Way | None, request: Request) -> bool:
        """Whether what came back is the answer to what this browser asked."""
        given = request.query_params
        asked = way is not None and hmac.compare_digest(way.state.encode(), given.get("state", "").encode())
        return asked and given.get("iss", self._provider.issuer) == self._provider.issuer

    async def claims(self, way: Way, code: str, back: str) -> Claims:
        """Who they are, for the code that they came back with."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": back,
            "code_verifier": way.verifier,
        }
        client = (self._sign_in.client_id, self._sign_in.client_secret)
        token = await self._provider.exchange(form, client)
        return await self._tokens.believe_log_in(token, self._sign_in.client_id, way.nonce)


def _text(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
