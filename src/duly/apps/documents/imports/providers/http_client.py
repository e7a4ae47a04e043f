"""The HTTP client for providers: bounded in time and size, with redirects to known hosts only."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Protocol, Self
from urllib.parse import urlencode, urlsplit

import httpcore

from duly.apps.documents.imports.options import LOCAL_HOSTS
from duly.apps.documents.imports.providers.remote import (
    DownloadDamaged,
    FileRefused,
    ProviderBusy,
    ProviderError,
    ProviderUnreachable,
    RemoteNotFound,
    RemoteUnauthorized,
)
from duly.core.outcome import parse_retry_after

_MAX_RESPONSE_SIZE = 32 * 2**20
_MAX_ERROR_SIZE = 64 * 1024
_MAX_RETRY_AFTER = 3600.0
_MAX_REDIRECTS = 3
_TIMEOUTS = {"connect": 10.0, "read": 30.0, "write": 30.0, "pool": 10.0}
_NETWORK_ERRORS = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError)
ErrorMapper = Callable[[int, Any], ProviderError | None]
"""Maps the status and JSON of a response to an error, where a provider deviates from the usual meaning."""


class TokenSource(Protocol):
    """The access token of an account."""

    async def current(self) -> str:
        """Return the token."""

    async def refresh(self, rejected: str) -> str:
        """Return another token than the rejected one."""


@cache
def _ssl_context() -> ssl.SSLContext:
    context = httpcore.default_ssl_context()
    context.load_default_certs()
    return context


class HttpClient:
    """Connections to one provider, without cookies and proxies. URLs may be keys: they are never logged."""

    def __init__(
        self, *, response_timeout: timedelta, map_error: ErrorMapper, download_hosts: tuple[str, ...] = ()
    ) -> None:
        self._pool = httpcore.AsyncConnectionPool(ssl_context=_ssl_context(), max_connections=4)
        self._response_timeout = response_timeout.total_seconds()
        self._map_error = map_error
        self._download_hosts = download_hosts

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.aclose()

    async def json(
        self,
        tokens: TokenSource | None,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Any:
        """Send a request and return the JSON of the response."""
        try:
            async with (
                asyncio.timeout(self._response_timeout),
                self._send_authenticated(tokens, method, url, dict(headers or {}), body) as response,
            ):
                return _parse_json(await _read(response, _MAX_RESPONSE_SIZE))
        except (TimeoutError, *_NETWORK_ERRORS):
            raise ProviderUnreachable("the provider did not respond") from None

    @asynccontextmanager
    async def download(
        self, tokens: TokenSource, method: str, url: str, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Download a file; raise DownloadDamaged if it breaks off."""
        async with AsyncExitStack() as stack:
            response = await stack.enter_async_context(
                self._send_authenticated(tokens, method, url, dict(headers or {}), b"")
            )
            for _ in range(_MAX_REDIRECTS):
                if not 300 <= response.status < 400:
                    break
                response = await self._follow(stack, self._checked_location(_header(response, "location")))
            if response.status != 200 or _header(response, "content-encoding") not in ("", "identity"):
                raise DownloadDamaged("the provider sent something other than the file")
            yield _body(response)

    async def _follow(self, stack: AsyncExitStack, url: str) -> httpcore.Response:
        """Follow a redirect without the token: the URL itself is the key."""
        try:
            return await stack.enter_async_context(self._send_authenticated(None, "GET", url, {}, b""))
        except RemoteUnauthorized:
            raise DownloadDamaged("the download link has expired") from None

    def _checked_location(self, url: str) -> str:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
        is_known = any(
            host == known or (known[:1] == "." and host.endswith(known)) for known in self._download_hosts
        )
        if is_known and (parts.scheme == "https" or host in LOCAL_HOSTS):
            return url
        raise FileRefused(
            f"the download is redirected to {host[:100]!a}, which is not allowed", "provider.redirect"
        )

    @asynccontextmanager
    async def _send_authenticated(
        self, tokens: TokenSource | None, method: str, url: str, headers: dict[str, str], body: bytes
    ) -> AsyncIterator[httpcore.Response]:
        """Yield a successful response. A rejected token is refreshed once, and the request repeated."""
        token = None if tokens is None else await tokens.current()
        for is_last in (False, True):
            async with self._send(method, url, _headers(headers, token), body) as response:
                if response.status < 400:
                    yield response
                    return
                error = await self._error(response)
            if tokens is None or token is None or is_last or not isinstance(error, RemoteUnauthorized):
                raise error
            token = await tokens.refresh(token)

    @asynccontextmanager
    async def _send(
        self, method: str, url: str, headers: dict[str, str], body: bytes
    ) -> AsyncIterator[httpcore.Response]:
        stream = self._pool.stream(
            method,
            url,
            headers=list(headers.items()),
            content=body or None,
            extensions={"timeout": _TIMEOUTS},
        )
        async with AsyncExitStack() as stack:
            try:
                response = await stack.enter_async_context(stream)
            except (*_NETWORK_ERRORS, httpcore.UnsupportedProtocol):
                raise ProviderUnreachable("the provider cannot be reached") from None
            yield response

    async def _error(self, response: httpcore.Response) -> ProviderError:
        body: Any = None
        with suppress(ProviderError, *_NETWORK_ERRORS):
            body = _parse_json(await _read(response, _MAX_ERROR_SIZE))
        error = self._map_error(response.status, body)
        if isinstance(error, ProviderBusy) or (error is None and response.status in (429, 503)):
            return ProviderBusy(
                parse_retry_after(_header(response, "retry-after"), datetime.now(UTC), _MAX_RETRY_AFTER)
            )
        return error or _error_of_status(response.status)


class AuthenticatedClient:
    """An HTTP client with the tokens of one account."""

    def __init__(self, http: HttpClient, tokens: TokenSource) -> None:
        self._http = http
        self._tokens = tokens

    async def get_json(self, url: str) -> Any:
        """Return the JSON of a GET request."""
        return await self._http.json(self._tokens, "GET", url)

    async def post_json(self, url: str, body: Any, headers: Mapping[str, str]) -> Any:
        """Return the JSON of a POST request with a JSON body."""
        headers = {**headers, "content-type": "application/json"}
        return await self._http.json(
            self._tokens, "POST", url, headers=headers, body=json.dumps(body).encode()
        )

    @asynccontextmanager
    async def download(
        self, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Download a file."""
        async with self._http.download(self._tokens, method, url, headers) as chunks:
            yield chunks


def with_query(url: str, **parameters: str | int | None) -> str:
    """Return the URL with query parameters; those that are None are left out."""
    return f"{url}?{urlencode({name: value for name, value in parameters.items() if value is not None})}"


def _error_of_status(status: int) -> ProviderError:
    match status:
        case 401:
            return RemoteUnauthorized()
        case 404 | 410:
            return RemoteNotFound()
        case 400 | 403 | 409 | 413 | 451:
            return FileRefused(f"the provider refused the request: {status}")
    return ProviderUnreachable(f"the provider responded with {status}")


def _headers(headers: dict[str, str], token: str | None) -> dict[str, str]:
    headers = {"user-agent": "duly-imports", "accept-encoding": "identity", **headers}
    return headers if token is None else {**headers, "authorization": f"Bearer {token}"}


async def _read(response: httpcore.Response, max_size: int) -> bytes:
    data = bytearray()
    async for chunk in response.aiter_stream():
        data += chunk
        if len(data) > max_size:
            raise ProviderUnreachable(f"the provider's response is larger than {max_size} bytes")
    return bytes(data)


async def _body(response: httpcore.Response) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.aiter_stream():
            yield chunk
    except _NETWORK_ERRORS:
        raise DownloadDamaged("the download broke off") from None


def _parse_json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise ProviderUnreachable("the provider's response is not JSON") from None


def _header(response: httpcore.Response, name: str) -> str:
    key = name.encode()
    return next((value.decode("latin-1") for header, value in response.headers if header.lower() == key), "")
