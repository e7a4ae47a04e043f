"""One try: a POST that goes where it may go, takes as long as it may take, and follows nobody elsewhere."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Self

import httpcore

from duly.core.errors import ContractError
from duly.features.webhooks.backoff import Answer
from duly.features.webhooks.guarded_network import Guard, Refused
from duly.features.webhooks.resolver import Crowded

_READ = 4096
"""Bytes of an answer that are read: none of them counts but the status."""
_READING = 1.0
"""Seconds for that: an answer counts when its status is there."""
_CONNECTING = 5.0
_LONGEST_ERROR = 200
_AGENT = "duly-webhooks"


@cache
def trusted() -> ssl.SSLContext:
    """Whose certificates are believed: the usual ones and this system's. It takes a moment to read them."""
    context = httpcore.default_ssl_context()
    context.load_default_certs()
    return context


class Sender:
    """Sends messages over connections of its own: no proxy, no cookies, no redirects."""

    def __init__(
        self, guard: Guard, *, limit: float, connections: int, trust: ssl.SSLContext | None = None
    ) -> None:
        """`limit`: seconds from the first look for the address to the end of the answer."""
        self._guard = guard
        self._limit = limit
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=trust or trusted(),
            max_connections=connections,
            max_keepalive_connections=connections // 2,
            keepalive_expiry=10.0,
            network_backend=guard,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Try once. Whatever goes wrong is said in the answer."""
        began = time.monotonic()
        status, error, pause, asked = None, None, None, True
        try:
            self._guard.check_url(url)
            async with asyncio.timeout(self._limit):
                status, pause = await self._post(url, headers, body)
        except (TimeoutError, httpcore.TimeoutException):
            error = "no answer in time"
        except ContractError as refused:
            error = f"refused: {refused}"
        except Refused as refused:
            error = f"refused: {refused}"
        except Crowded as crowded:
            error, asked = f"not sent: {crowded}", False
        except (
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.UnsupportedProtocol,
            OSError,
        ) as trouble:
            error = f"no connection: {trouble}"[:_LONGEST_ERROR] or type(trouble).__name__
        return Answer(status, error or _judged(status), pause, time.monotonic() - began, asked)

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, float | None]:
        sent = [*headers.items(), ("user-agent", _AGENT), ("accept", "*/*")]
        timeouts = {"connect": min(_CONNECTING, self._limit)}
        async with self._pool.stream(
            "POST", url, headers=sent, content=body, extensions={"timeout": timeouts}
        ) as answer:
            await _read(answer)
            return answer.status, _retry_after(answer)


async def _read(answer: httpcore.Response) -> None:
    """Read to its end, it leaves the connection to the next; whoever says more, or nothing, is hung up on."""
    read = 0
    with suppress(TimeoutError, httpcore.NetworkError, httpcore.ProtocolError):
        async with asyncio.timeout(_READING):
            async for part in answer.aiter_stream():
                read += len(part)
                if read > _READ:
                    break


def _judged(status: int | None) -> str | None:
    """Why an answer is none that we wanted."""
    if status is None or 200 <= status < 300:
        return None
    return "a redirect, which is not followed" if 300 <= status < 400 else f"answered {status}"


def _retry_after(answer: httpcore.Response) -> float | None:
    """How long a receiver that is busy wants to be left alone."""
    if answer.status not in (429, 503):
        return None
    said = next((v.decode("latin-1") for name, v in answer.headers if name.lower() == b"retry-after"), "")
    if said.strip().isascii() and said.strip().isdigit():
        return float(said)
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, (parsedate_to_datetime(said).astimezone(UTC) - datetime.now(UTC)).total_seconds())
    return None
