"""Authenticate requests by API key, token or session; each result is cached for a few seconds."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace

from fastapi import Request

from duly.core.errors import Unauthenticated
from duly.core.job import SYSTEM_ORG, Actor
from duly.core.principal import ROLE_SCOPES, Principal, Scope
from duly.features.api_keys.service import ApiKeys, unknown_credential
from duly.features.members.service import Members
from duly.features.sessions.service import Sessions
from duly.http.authentication import cookies, csrf
from duly.http.authentication.jwt import TokenClaims, TokenVerifier
from duly.jobs.application import App

MAX_CACHED_PRINCIPALS = 10_000
_BEARER = "bearer "


class Authenticator:
    """Turns credentials into principals."""

    def __init__(self, app: App, tokens: TokenVerifier, *, cache_ttl: float, secure: bool = False) -> None:
        self._keys = ApiKeys(app)
        self._members = Members(app)
        self._sessions = Sessions(app)
        self.tokens = tokens
        self._cache_ttl = cache_ttl
        self._secure = secure
        self._cache: OrderedDict[bytes, tuple[float, Principal]] = OrderedDict()

    async def principal(self, request: Request) -> Principal:
        """Return the principal of a request, or raise. The Authorization header wins over a cookie."""
        header = request.headers.get("authorization", "")
        if header.lower().startswith(_BEARER):
            return await self.authenticate(header[len(_BEARER) :].strip())
        token = cookies.session_token(request, secure=self._secure)
        if token is None:
            raise Unauthenticated(
                "no credential", field="authorization", fix="send `Authorization: Bearer <key or token>`"
            )
        return await self._of_session(request, token)

    async def authenticate(self, credential: str) -> Principal:
        """Return the principal of an API key or a token."""
        return await self._cached(
            _cache_key("credential", credential), lambda: self._of_credential(credential)
        )

    async def of_id_token(self, claims: TokenClaims) -> Principal:
        """Return the principal that signed in at the provider; it does not expire with the id token."""
        return replace(await self._of_claims(claims), expires_at=None)

    async def sign_out(self, request: Request, *, all_sessions: bool = False) -> None:
        """End the session of a request, or all sessions of the same key, member or operator."""
        token = cookies.session_token(request, secure=self._secure)
        if token is None:
            raise unknown_credential()
        principal = await self._of_session(request, token)
        if all_sessions:
            await self._sessions.close_all(principal)
            self._cache.clear()
            return
        await self._sessions.close(principal, token)
        self._cache.pop(_cache_key("session", token), None)

    async def _of_session(self, request: Request, token: str) -> Principal:
        csrf.check_csrf(request, token)
        return await self._cached(_cache_key("session", token), lambda: self._sessions.authenticate(token))

    async def _cached(self, key: bytes, load: Callable[[], Awaitable[Principal]]) -> Principal:
        until, principal = self._cache.get(key, (0.0, None))
        if principal is not None and time.monotonic() < until:
            return principal
        self._cache.pop(key, None)
        principal = await load()
        self._cache[key] = (time.monotonic() + self._cache_ttl, principal)
        while len(self._cache) > MAX_CACHED_PRINCIPALS:
            self._cache.popitem(last=False)
        return principal

    async def _of_credential(self, credential: str) -> Principal:
        if credential.startswith("duly_"):
            return await self._keys.authenticate(credential)
        return await self._of_claims(await self.tokens.verify(credential))

    async def _of_claims(self, claims: TokenClaims) -> Principal:
        if claims.org_id is None:
            actor, scopes = Actor.operator(claims.user_id), frozenset({Scope.PLATFORM})
            return Principal(SYSTEM_ORG, actor, scopes, expires_at=claims.expires_at)
        role = await self._members.role_of(claims.org_id, claims.user_id)
        if role is None:
            raise unknown_credential()
        actor = Actor.user(claims.user_id)
        return Principal(claims.org_id, actor, ROLE_SCOPES[role], expires_at=claims.expires_at)


def _cache_key(kind: str, secret: str) -> bytes:
    """Return a hash, so that no credential stays in memory; a session never counts as an API key."""
    return hashlib.sha256(f"{kind} {secret}".encode("utf-8", "surrogatepass")).digest()
