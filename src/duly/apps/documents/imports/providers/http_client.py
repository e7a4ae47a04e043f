"""Asking a provider: bounded in time and size, as somebody, and without following anybody elsewhere."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import httpcore

from duly.apps.documents.imports.options import LOCAL
from duly.apps.documents.imports.providers.remote import (
    Busy,
    Damaged,
    Missing,
    Refused,
    Trouble,
    Unauthorized,
    Unreachable,
)
from duly.apps.documents.imports.providers.tokens import Tokens

_LARGEST_ANSWER = 32 * 2**20
_LARGEST_ERROR = 64 * 1024
_LONGEST_PAUSE = 3600.0
_REDIRECTS = 3
_WAITS = {"connect": 10.0, "read": 30.0, "write": 30.0, "pool": 10.0}
_TROUBLES = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError)
Explain = Callable[[int, Any], Trouble | None]
"""What a provider means by a status and the JSON that came with it, if it means more than others do."""


@cache
def _trusted() -> ssl.SSLContext:
    context = httpcore.default_ssl_context()
    context.load_default_certs()
    return context


class Web:
    """Connections to one provider. Without cookies and proxies; URLs, which may be keys, are never logged."""

    def __init__(
        self, *, answer_timeout: timedelta, explain: Explain, downloads: tuple[str, ...] = ()
    ) -> None:
        self._pool = httpcore.AsyncConnectionPool(ssl_context=_trusted(), max_connections=4)
        self._limit = answer_timeout.total_seconds()
        self._explain = explain
        self._downloads = downloads

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.aclose()

    async def json(
        self,
        tokens: Tokens | None,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Any:
        """What they answer."""
        try:
            async with (
                asyncio.timeout(self._limit),
                self._answered(tokens, method, url, dict(headers or {}), body) as answer,
            ):
                return _parsed(await _read(answer, _LARGEST_ANSWER))
        except (TimeoutError, *_TROUBLES):
            raise Unreachable("the provider did not answer") from None

    @asynccontextmanager
    async def download(
        self, tokens: Tokens, method: str, url: str, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a file. If it breaks off, what was read of it is damaged."""
        async with AsyncExitStack() as stack:
            answer = await stack.enter_async_context(
                self._answered(tokens, method, url, dict(headers or {}), b"")
            )
            for _ in range(_REDIRECTS):
                if not 300 <= answer.status < 400:
                    break
                answer = await self._followed(stack, self._onward(_header(answer, "location")))
            if answer.status != 200 or _header(answer, "content-encoding") not in ("", "identity"):
                raise Damaged("the provider sends something else")
            yield _body(answer)

    async def _followed(self, stack: AsyncExitStack, url: str) -> httpcore.Response:
        """Where it leads, the URL itself is the key: the token is nobody's business there."""
        try:
            return await stack.enter_async_context(self._answered(None, "GET", url, {}, b""))
        except Unauthorized:
            raise Damaged("the way to the file has expired") from None

    def _onward(self, url: str) -> str:
        said = urlsplit(url)
        host = (said.hostname or "").lower()
        named = any(host == known or (known[:1] == "." and host.endswith(known)) for known in self._downloads)
        if named and (said.scheme == "https" or host in LOCAL):
            return url
        raise Refused(f"a download is sent on to {host[:100]!a}, which is not allowed", "provider.redirect")

    @asynccontextmanager
    async def _answered(
        self, tokens: Tokens | None, method: str, url: str, headers: dict[str, str], body: bytes
    ) -> AsyncIterator[httpcore.Response]:
        """An answer that is one. With a token that is not accepted, it is asked once more with a new one."""
        token = None if tokens is None else await tokens.current()
        for last in (False, True):
            async with self._asked(method, url, _headers(headers, token), body) as answer:
                if answer.status < 400:
                    yield answer
                    return
                trouble = await self._trouble(answer)
            if tokens is None or token is None or last or not isinstance(trouble, Unauthorized):
                raise trouble
            token = await tokens.renewed(token)

    @asynccontextmanager
    async def _asked(
        self, method: str, url: str, headers: dict[str, str], body: bytes
    ) -> AsyncIterator[httpcore.Response]:
        stream = self._pool.stream(
            method, url, headers=list(headers.items()), content=body or None, extensions={"timeout": _WAITS}
        )
        async with AsyncExitStack() as stack:
            try:
                answer = await stack.enter_async_context(stream)
            except (*_TROUBLES, httpcore.UnsupportedProtocol):
                raise Unreachable("the provider cannot be reached") from None
            yield answer

    async def _trouble(self, answer: httpcore.Response) -> Trouble:
        said: Any = None
        with suppress(Trouble, *_TROUBLES):
            said = _parsed(await _read(answer, _LARGEST_ERROR))
        meant = self._explain(answer.status, said)
        if meant is not None and not isinstance(meant, Busy):
            return meant
        if meant is not None or answer.status in (429, 503):
            return Busy(_retry_after(_header(answer, "retry-after")))
        return _usual(answer.status)


def query(url: str, **parameters: str | int | None) -> str:
    """The URL with parameters; those that are None are left out."""
    return f"{url}?{urlencode({name: value for name, value in parameters.items() if value is not None})}"


def _usual(status: int) -> Trouble:
    match status:
        case 401:
            return Unauthorized("the provider does not accept the connector's token")
        case 404 | 410:
            return Missing("the provider has nothing of that name")
        case 400 | 403 | 409 | 413 | 451:
            return Refused(f"the provider refused it: {status}")
    return Unreachable(f"the provider answered {status}")


def _headers(headers: dict[str, str], token: str | None) -> dict[str, str]:
    plain = {"user-agent": "duly-imports", "accept-encoding": "identity", **headers}
    return plain if token is None else {**plain, "authorization": f"Bearer {token}"}


async def _read(answer: httpcore.Response, most: int) -> bytes:
    found = bytearray()
    async for part in answer.aiter_stream():
        found += part
        if len(found) > most:
            raise Unreachable("the provider's answer has no end")
    return bytes(found)


async def _body(answer: httpcore.Response) -> AsyncIterator[bytes]:
    try:
        async for part in answer.aiter_stream():
            yield part
    except _TROUBLES:
        raise Damaged("the download broke off") from None


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise Unreachable("the provider's answer is no JSON") from None


def _header(answer: httpcore.Response, name: str) -> str:
    wanted = name.encode()
    return next((value.decode("latin-1") for key, value in answer.headers if key.lower() == wanted), "")


def _retry_after(said: str) -> float | None:
    pause: float | None = None
    if said.strip().isascii() and said.strip().isdigit():
        pause = float(said)
    else:
        with suppress(ValueError, TypeError, OverflowError):
            pause = (parsedate_to_datetime(said).astimezone(UTC) - datetime.now(UTC)).total_seconds()
    return None if pause is None else min(max(pause, 0.0), _LONGEST_PAUSE)
