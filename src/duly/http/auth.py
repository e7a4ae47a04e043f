"""Who is asking: a key, a token, or a browser that logged in. Each is believed for a few seconds more."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace

from fastapi import Request

from duly.client.app import App
from duly.control.keys import Keys, unknown_credential
from duly.control.members import Members
from duly.control.sessions import Sessions
from duly.http import cookies
from duly.http.tokens import Claims, Tokens
from duly.model.access import SCOPES_OF, Principal, Scope
from duly.model.errors import Unauthenticated
from duly.model.job import Actor
from duly.model.system import SYSTEM_ORG

_MOST = 10_000
_SCHEME = "bearer "


class Authenticator:
    """Believes credentials, and remembers for a few seconds whom it believed."""

    def __init__(self, app: App, tokens: Tokens, *, believed_for: float, secure: bool = False) -> None:
        self._keys = Keys(app)
        self._members = Members(app)
        self._sessions = Sessions(app)
        self.tokens = tokens
        self._believed_for = believed_for
        self._secure = secure
        self._believed: OrderedDict[bytes, tuple[float, Principal]] = OrderedDict()

    async def principal(self, request: Request) -> Principal:
        """Whoever sent this request; nobody raises. A credential in the headers wins over a cookie."""
        given = request.headers.get("authorization", "")
        if given.lower().startswith(_SCHEME):
            return await self.believe(given[len(_SCHEME) :].strip())
        token = cookies.token_in(request, secure=self._secure)
        if token is None:
            raise Unauthenticated(
                "no credential", field="authorization", fix="send `Authorization: Bearer <key or token>`"
            )
        return await self._logged_in(request, token)

    async def believe(self, credential: str) -> Principal:
        """Whoever holds this credential."""
        return await self._remembered(_name("credential", credential), lambda: self._ask(credential))

    async def logged_in_elsewhere(self, claims: Claims) -> Principal:
        """Whoever has just logged in at the issuer: its token was for that moment, and ends nothing later."""
        return replace(await self._of_token(claims), expires_at=None)

    async def log_out(self, request: Request, *, everywhere: bool = False) -> None:
        """End the log-in that the request came with, or all that stand for the same."""
        token = cookies.token_in(request, secure=self._secure)
        if token is None:
            raise unknown_credential()
        who = await self._logged_in(request, token)
        if everywhere:
            await self._sessions.close_all(who)
            self._believed.clear()
            return
        await self._sessions.close(who, token)
        self._believed.pop(_name("session", token), None)

    async def _logged_in(self, request: Request, token: str) -> Principal:
        cookies.check_meant(request, token)
        return await self._remembered(_name("session", token), lambda: self._sessions.believe(token))

    async def _remembered(self, name: bytes, ask: Callable[[], Awaitable[Principal]]) -> Principal:
        until, known = self._believed.get(name, (0.0, None))
        if known is not None and time.monotonic() < until:
            return known
        self._believed.pop(name, None)
        found = await ask()
        self._believed[name] = (time.monotonic() + self._believed_for, found)
        while len(self._believed) > _MOST:
            self._believed.popitem(last=False)
        return found

    async def _ask(self, credential: str) -> Principal:
        if credential.startswith("duly_"):
            return await self._keys.believe(credential)
        return await self._of_token(await self.tokens.believe(credential))

    async def _of_token(self, claims: Claims) -> Principal:
        if claims.org_id is None:
            who, may = Actor.operator(claims.user_id), frozenset({Scope.PLATFORM})
            return Principal(SYSTEM_ORG, who, may, expires_at=claims.expires_at)
        role = await self._members.role_of(claims.org_id, claims.user_id)
        if role is None:
            raise unknown_credential()
        who = Actor.user(claims.user_id)
        return Principal(claims.org_id, who, SCOPES_OF[role], expires_at=claims.expires_at)


def _name(kind: str, secret: str) -> bytes:
    """A hash, so that no credential lies about in memory; one kind of it is not believed as another."""
    return hashlib.sha256(f"{kind} {secret}".encode("utf-8", "surrogatepass")).digest()
