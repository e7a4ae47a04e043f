"""The sender: one signed POST per attempt, to allowed addresses, within a time limit, without redirects."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import Self

import httpcore

from duly.core.errors import ContractError
from duly.core.outcome import parse_retry_after
from duly.features.webhooks.failures import attempt_result, crashed, not_sent, undeliverable
from duly.features.webhooks.models import AttemptResult, ClaimedDelivery, HttpResult, OutboundMessage
from duly.features.webhooks.network_backend import ForbiddenAddress, NetworkGuard, TooManyLookups, lookup_org
from duly.features.webhooks.signed_message import CONTENT_TYPE, build_body, sign

log = logging.getLogger("duly.webhooks")
_MAX_BODY_BYTES = 4096
"""Bytes of a response body that are read: only its status counts."""
_BODY_TIMEOUT = 1.0
_CONNECT_TIMEOUT = 5.0
_KEEPALIVE = 10.0
_MAX_ERROR_LENGTH = 200
_USER_AGENT = "duly-webhooks"


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Load the certificate authorities of httpcore and of the system; this takes a moment."""
    context = httpcore.default_ssl_context()
    context.load_default_certs()
    return context


class Sender:
    """Sends messages over its own connections: no proxy, no cookies, no redirects."""

    def __init__(
        self,
        guard: NetworkGuard,
        *,
        timeout: float,
        connections: int,
        public_url: str = "",
        trust: ssl.SSLContext | None = None,
    ) -> None:
        """`timeout`: seconds from the lookup of the host to the end of the response."""
        self._guard = guard
        self._timeout = timeout
        self._public_url = public_url
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=trust or trusted_certificates(),
            max_connections=connections,
            max_keepalive_connections=connections // 2,
            keepalive_expiry=_KEEPALIVE,
            network_backend=guard,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    async def deliver(self, delivery: ClaimedDelivery, message: OutboundMessage | None) -> AttemptResult:
        """Make one attempt. It never raises: every failure is a result that can be settled."""
        at = datetime.now(UTC)
        if message is None:
            return undeliverable(delivery, "the endpoint was deleted", at)
        if delivery.data is None and message.event is None:
            return undeliverable(delivery, "the event is no longer retained", at)
        try:
            return attempt_result(delivery, await self._send_signed(delivery, message), at)
        except Exception as error:
            log.exception("webhook attempt crashed")
            return crashed(delivery, error, at)

    async def _send_signed(self, delivery: ClaimedDelivery, message: OutboundMessage) -> HttpResult:
        if not message.secrets:
            return not_sent("the endpoint has no signing secret")
        lookup_org.set(delivery.key.org_id)
        body = build_body(delivery, message.event if delivery.data is None else None, self._public_url)
        headers = sign(delivery.message_id, int(time.time()), body, message.secrets)
        return await self.send(message.url, {**headers, "content-type": CONTENT_TYPE}, body)

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpResult:
        """Send one request. The result says what went wrong."""
        started_at = time.monotonic()
        status, error, retry_after, counts = None, None, None, True
        try:
            self._guard.allowed.check(url)
            async with asyncio.timeout(self._timeout):
                status, retry_after = await self._post(url, headers, body)
                error = _status_error(status)
        except (TimeoutError, httpcore.TimeoutException):
            error = "timed out"
        except (ContractError, ForbiddenAddress) as refusal:
            error = f"refused: {refusal}"
        except TooManyLookups as crowd:
            error, counts = f"not sent: {crowd}", False
        except (
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.UnsupportedProtocol,
            OSError,
        ) as failure:
            error = f"connection failed: {failure}"[:_MAX_ERROR_LENGTH]
        return HttpResult(status, error, retry_after, time.monotonic() - started_at, counts)

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, float | None]:
        all_headers = [*headers.items(), ("user-agent", _USER_AGENT), ("accept", "*/*")]
        timeouts = {"connect": min(_CONNECT_TIMEOUT, self._timeout)}
        async with self._pool.stream(
            "POST", url, headers=all_headers, content=body, extensions={"timeout": timeouts}
        ) as response:
            await _drain(response)
            return response.status, _retry_after(response)


async def _drain(response: httpcore.Response) -> None:
    """Read a short body to its end, so that the connection can be reused; else it is closed."""
    size = 0
    with suppress(TimeoutError, httpcore.NetworkError, httpcore.ProtocolError):
        async with asyncio.timeout(_BODY_TIMEOUT):
            async for part in response.aiter_stream():
                size += len(part)
                if size > _MAX_BODY_BYTES:
                    break


def _status_error(status: int) -> str | None:
    """Return why a status does not mean delivered."""
    if 200 <= status < 300:
        return None
    return f"HTTP {status}: redirects are not followed" if 300 <= status < 400 else f"HTTP {status}"


def _retry_after(response: httpcore.Response) -> float | None:
    """Return the seconds that a busy receiver requests to wait."""
    if response.status not in (429, 503):
        return None
    values = (value.decode("latin-1") for name, value in response.headers if name.lower() == b"retry-after")
    return parse_retry_after(next(values, ""), datetime.now(UTC))
