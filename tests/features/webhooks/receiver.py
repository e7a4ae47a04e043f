"""A receiver of webhooks on loopback: a real server that responds as the path says."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

_ENDLESS = {
    "/huge": (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 2**16),
    "/headers": (b"HTTP/1.1 200 OK\r\n", b"x-more: " + b"x" * 2**16 + b"\r\n"),
    "/continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
}
"""The start of a response, and the part that it repeats without end."""


@dataclass(frozen=True)
class Received:
    """A received request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        """The message."""
        message: dict[str, Any] = json.loads(self.body)
        return message


@dataclass
class Receiver:
    """The received requests in order. `/500` responds with 500, `/stall` never; see below for others."""

    port: int = 0
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    """The status with which a path responds from now on."""
    retry_after: str = "600"
    """The Retry-After header of `/busy`."""
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    def url(self, path: str = "/200", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    async def until(self, n: int) -> list[Received]:
        """Wait until so many requests were received."""
        async with asyncio.timeout(20), self._news:
            await self._news.wait_for(lambda: len(self.received) >= n)
        return self.received

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._respond(reader, writer):
                    pass
        finally:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        line, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in rest)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        path = line.split()[1]
        async with self._news:
            self.received.append(Received(path, headers, body))
            self._news.notify_all()
        writer.write(await self._response(path, writer))
        await writer.drain()
        return True

    async def _response(self, path: str, writer: asyncio.StreamWriter) -> bytes:
        match path:
            case "/stall":
                await asyncio.Event().wait()
            case "/drip":
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nx")
                await asyncio.Event().wait()
            case "/huge" | "/headers" | "/continue":
                begin, part = _ENDLESS[path]
                writer.write(begin)
                while True:
                    writer.write(part)
                    await writer.drain()
            case "/redirect":
                return _response(302, f"location: {self.url('/elsewhere')}\r\n")
            case "/busy":
                return _response(429, f"retry-after: {self.retry_after}\r\n")
            case "/hangup":
                raise ConnectionResetError
        return _response(self.statuses.get(path) or int(path.strip("/").partition("?")[0]))


def _response(status: int, headers: str = "") -> bytes:
    return f"HTTP/1.1 {status} So\r\n{headers}content-length: 2\r\n\r\nok".encode()


@asynccontextmanager
async def receiving(host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """Run a receiver until the end of the block."""
    receiver = Receiver()
    serving: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(receiver.serve(reader, writer))
        serving.add(task)
        task.add_done_callback(serving.discard)

    server = await asyncio.start_server(begin, host, 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in list(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
