"""A connection that hangs up on whoever has no end: an answer that counts is short."""

from __future__ import annotations

import ssl
from typing import Any

import httpcore

_MOST = 2**15
"""Bytes that are read after something was sent, about."""
_PART = 2**12
"""So many at a time: what is in them is looked at without a pause."""


class Bounded(httpcore.AsyncNetworkStream):
    """A stream on which each answer may be so long. Interim answers, any number of them, are part of it."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._read = 0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """What has come, unless too much has."""
        if self._read >= _MOST:
            raise httpcore.ReadError("the answer is too long")
        part = await self._stream.read(min(max_bytes, _PART), timeout)
        self._read += len(part)
        return part

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send; what comes then is another answer."""
        self._read = 0
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Hang up."""
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        """The same, over TLS."""
        return Bounded(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """What the stream knows about itself."""
        return self._stream.get_extra_info(info)
