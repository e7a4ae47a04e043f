"""An identity provider by OpenID discovery: its keys and endpoints, cached for a while."""

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
_CACHE_TTL = 300.0
_RETRY_PAUSE = 10.0
_REQUEST_TIMEOUT = 5.0
_TOTAL_TIMEOUT = 10.0
MAX_RESPONSE_BYTES = 1_000_000
MALFORMED = (KeyError, ValueError, TypeError, AttributeError, RecursionError)
"""The errors of reading a malformed document."""
_FAILURES = (httpx.HTTPError, httpx.InvalidURL, jwt.PyJWTError, TimeoutError, *MALFORMED)


class ProviderUnavailable(Exception):
    """The provider does not answer, or its answer is malformed; its text is not passed on."""


class ProviderEndpoints(NamedTuple):
    """Where users sign in, and where their code is exchanged for a token."""

    authorize: str
    token: str
    basic_auth: bool
    """Whether the token endpoint takes the client secret in a header, else in the form."""


class IdentityProvider:
    """One issuer of tokens."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self._configuration: Mapping[str, Any] = {}
        self._keys: dict[str, Any] = {}
        self._fetched_at = float("-inf")
        self._lock = asyncio.Lock()

    async def key(self, key_id: str) -> Any:
        """Return a key. An unknown id refetches the keys, but not more often than every few seconds."""
        await self._fetch_unless(lambda: key_id in self._keys)
        return self._keys[key_id]

    async def endpoints(self) -> ProviderEndpoints:
        """Return the endpoints of the provider."""
        await self._fetch_unless(lambda: bool(self._configuration))
        try:
            methods = self._configuration.get(
                "token_endpoint_auth_methods_supported", ["client_secret_basic"]
            )
            authorize, token = (
                self._configuration["authorization_endpoint"],
                self._configuration["token_endpoint"],
            )
            if not all(url.startswith(("https://", "http://")) for url in (authorize, token)):
                raise ValueError("not a URL")
            return ProviderEndpoints(authorize, token, "client_secret_basic" in methods)
        except MALFORMED:
            raise ProviderUnavailable from None

    async def exchange(self, form: Mapping[str, str], client: tuple[str, str | None]) -> str:
        """Exchange a code for its id token. The rest of the response is discarded."""
        endpoints, (client_id, secret) = await self.endpoints(), client
        basic_auth = secret is not None and endpoints.basic_auth
        credentials = {"client_id": client_id, **({"client_secret": secret} if secret else {})}
        try:
            async with asyncio.timeout(_TOTAL_TIMEOUT), httpx.AsyncClient(timeout=_REQUEST_TIMEOUT) as http:
                answer = await _json(
                    http,
                    "POST",
                    endpoints.token,
                    data={**form, **({} if basic_auth else credentials)},
                    auth=_basic_auth(client_id, secret) if basic_auth else None,
                    headers={"accept": "application/json"},
                )
            return str(answer["id_token"])
        except _FAILURES as error:
            # The text of the error may contain the code or the secret.
            log.warning("could not exchange a code at %s: %s", self.issuer, type(error).__name__)
            raise ProviderUnavailable from None

    async def _fetch_unless(self, known: Callable[[], bool]) -> None:
        if self._is_due(known()):
            async with self._lock:
                if self._is_due(known()):
                    await self._fetch()

    def _is_due(self, known: bool) -> bool:
        return time.monotonic() - self._fetched_at > (_CACHE_TTL if known else _RETRY_PAUSE)

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(_TOTAL_TIMEOUT), httpx.AsyncClient(timeout=_REQUEST_TIMEOUT) as http:
                discovery = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
                configuration = await _json(http, "GET", discovery)
                keys = jwt.PyJWKSet.from_dict(await _json(http, "GET", configuration["jwks_uri"])).keys
            self._configuration, self._keys = configuration, {key.key_id or "": key.key for key in keys}
        except _FAILURES as error:
            # The cached keys stay valid until they are replaced.
            log.warning("could not fetch the keys of %s: %s", self.issuer, type(error).__name__)
        finally:
            self._fetched_at = time.monotonic()


def _basic_auth(client_id: str, secret: str | None) -> httpx.BasicAuth:
    """Return the header of the client; RFC 6749, 2.3.1 form-encodes both parts before they are joined."""
    return httpx.BasicAuth(quote_plus(client_id), quote_plus(secret or ""))


async def _json(http: httpx.AsyncClient, method: str, url: str, **options: Any) -> Any:
    content = b""
    async with http.stream(method, url, **options) as response:
        response.raise_for_status()
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > MAX_RESPONSE_BYTES:
                raise ValueError("response too large")
    return json.loads(content)
