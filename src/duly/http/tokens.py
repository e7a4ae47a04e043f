"""JSON Web Tokens: of issuers we were told to trust, with keys that are fetched and kept for a while."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import jwt

from duly.control.keys import unknown_credential

log = logging.getLogger("duly.http")
_KEPT = 300.0
_PAUSE = 10.0
_TIMEOUT = 5.0
_PATIENCE = 10.0
_LEEWAY = 30
_LARGEST = 1_000_000
_NOT_KEYS = (KeyError, ValueError, TypeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Issuer:
    """Somebody whose tokens are believed."""

    issuer: str
    """Exactly as in `iss`; its keys are found by OpenID discovery."""
    audience: str
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    """Pinned: what a token says of itself is not asked."""
    org_claim: str = "org_id"
    platform_claim: str | None = None
    """A claim that is true for those who look after the installation; nobody does, without it."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token that is believed says; without an org, that they look after the installation."""

    user_id: str
    org_id: UUID | None
    expires_at: datetime


class Tokens:
    """Believes tokens of some issuers."""

    def __init__(self, issuers: tuple[Issuer, ...]) -> None:
        self._issuers = {issuer.issuer: (issuer, _Keys(issuer.issuer)) for issuer in issuers}

    async def believe(self, token: str) -> Claims:
        """What the token says, if it is of an issuer we trust, for us, and not over."""
        try:
            header = jwt.get_unverified_header(token)
            said = jwt.decode(token, options={"verify_signature": False})
            issuer, keys = self._issuers[said["iss"]]
            claims = jwt.decode(
                token,
                await keys.get(str(header.get("kid", ""))),
                algorithms=list(issuer.algorithms),
                audience=issuer.audience,
                issuer=issuer.issuer,
                leeway=_LEEWAY,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
            return _claims(issuer, claims)
        except (jwt.PyJWTError, OverflowError, *_NOT_KEYS):
            raise unknown_credential() from None


def _claims(issuer: Issuer, claims: dict[str, Any]) -> Claims:
    ends = datetime.fromtimestamp(claims["exp"], UTC)
    if issuer.platform_claim is not None and claims.get(issuer.platform_claim) is True:
        return Claims(str(claims["sub"]), None, ends)
    return Claims(str(claims["sub"]), UUID(str(claims[issuer.org_claim])), ends)


class _Keys:
    """The public keys of one issuer."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._found: dict[str, Any] = {}
        self._asked_at = float("-inf")
        self._lock = asyncio.Lock()

    async def get(self, key_id: str) -> Any:
        """One key; an unknown one makes us ask again, but not all the time: anybody can send one."""
        if self._is_due(key_id):
            async with self._lock:
                if self._is_due(key_id):
                    await self._fetch()
        return self._found[key_id]

    def _is_due(self, key_id: str) -> bool:
        age = time.monotonic() - self._asked_at
        return age > (_KEPT if key_id in self._found else _PAUSE)

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(_PATIENCE), httpx.AsyncClient(timeout=_TIMEOUT) as client:
                discovery = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
                place = (await _json(client, discovery))["jwks_uri"]
                keys = jwt.PyJWKSet.from_dict(await _json(client, place)).keys
            self._found = {key.key_id or "": key.key for key in keys}
        except (httpx.HTTPError, httpx.InvalidURL, jwt.PyJWTError, TimeoutError, *_NOT_KEYS) as error:
            # Those that we have are good until they are replaced.
            log.warning("the keys of %s cannot be fetched: %s", self._issuer, type(error).__name__)
        finally:
            self._asked_at = time.monotonic()


async def _json(client: httpx.AsyncClient, url: str) -> Any:
    content = b""
    async with client.stream("GET", url) as answer:
        answer.raise_for_status()
        async for chunk in answer.aiter_bytes():
            content += chunk
            if len(content) > _LARGEST:
                raise ValueError("too large")
    return json.loads(content)
