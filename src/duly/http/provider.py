"""What an issuer says of itself, by OpenID discovery: its keys, and where people log in. Kept for a while."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote_plus

import httpx
import jwt

log = logging.getLogger("duly.http")
_KEPT = 300.0
_PAUSE = 10.0
_TIMEOUT = 5.0
_PATIENCE = 10.0
_LARGEST = 1_000_000
NOT_RIGHT = (KeyError, ValueError, TypeError, AttributeError, RecursionError)
"""What reading a document raises that is not as it should be."""
_FAILURES = (httpx.HTTPError, httpx.InvalidURL, jwt.PyJWTError, TimeoutError, *NOT_RIGHT)


class Unreachable(Exception):
    """The provider does not answer, or not as it should; what it said is not told on."""


class Places(NamedTuple):
    """Where people log in, and where their code is exchanged."""

    authorize: str
    token: str
    by_header: bool
    """Whether a secret is shown in a header there, or in the form."""


class Provider:
    """One issuer."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self._said: Mapping[str, Any] = {}
        self._keys: dict[str, Any] = {}
        self._asked_at = float("-inf")
        self._lock = asyncio.Lock()

    async def key(self, key_id: str) -> Any:
        """One key; an unknown one makes us ask again, but not all the time: anybody can send one."""
        await self._known(lambda: key_id in self._keys)
        return self._keys[key_id]

    async def places(self) -> Places:
        """Where people are sent."""
        await self._known(lambda: bool(self._said))
        try:
            ways = self._said.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
            authorize, token = self._said["authorization_endpoint"], self._said["token_endpoint"]
            if not all(place.startswith(("https://", "http://")) for place in (authorize, token)):
                raise ValueError("no address")
            return Places(authorize, token, "client_secret_basic" in ways)
        except NOT_RIGHT:
            raise Unreachable from None

    async def exchange(self, form: Mapping[str, str], client: tuple[str, str | None]) -> str:
        """The id token for a code. Nothing else of the answer is read, and nothing kept."""
        places, (client_id, secret) = await self.places(), client
        by_header = secret is not None and places.by_header
        shown = {"client_id": client_id, **({"client_secret": secret} if secret else {})}
        try:
            async with asyncio.timeout(_PATIENCE), httpx.AsyncClient(timeout=_TIMEOUT) as http:
                said = await _json(
                    http,
                    "POST",
                    places.token,
                    data={**form, **({} if by_header else shown)},
                    auth=_basic(client_id, secret) if by_header else None,
                    headers={"accept": "application/json"},
                )
            return str(said["id_token"])
        except _FAILURES as error:
            # What it raises may hold what was sent.
            log.warning("no token for a code of %s: %s", self.issuer, type(error).__name__)
            raise Unreachable from None

    async def _known(self, found: Callable[[], bool]) -> None:
        if self._is_due(found()):
            async with self._lock:
                if self._is_due(found()):
                    await self._ask()

    def _is_due(self, found: bool) -> bool:
        return time.monotonic() - self._asked_at > (_KEPT if found else _PAUSE)

    async def _ask(self) -> None:
        try:
            async with asyncio.timeout(_PATIENCE), httpx.AsyncClient(timeout=_TIMEOUT) as http:
                discovery = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
                said = await _json(http, "GET", discovery)
                keys = jwt.PyJWKSet.from_dict(await _json(http, "GET", said["jwks_uri"])).keys
            self._said, self._keys = said, {key.key_id or "": key.key for key in keys}
        except _FAILURES as error:
            # What we have is good until it is replaced.
            log.warning("the keys of %s cannot be fetched: %s", self.issuer, type(error).__name__)
        finally:
            self._asked_at = time.monotonic()


def _basic(client_id: str, secret: str | None) -> httpx.BasicAuth:
    """Both are encoded as in a form before they are put together: RFC 6749, 2.3.1."""
    return httpx.BasicAuth(quote_plus(client_id), quote_plus(secret or ""))


async def _json(http: httpx.AsyncClient, method: str, url: str, **more: Any) -> Any:
    content = b""
    async with http.stream(method, url, **more) as answer:
        answer.raise_for_status()
        async for chunk in answer.aiter_bytes():
            content += chunk
            if len(content) > _LARGEST:
                raise ValueError("too large")
    return json.loads(content)
