"""A receiver of webhooks on loopback: a real server, which answers as the path says."""

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
"""How an answer begins, and how it goes on."""


@dataclass(frozen=True)
class Got:
    """A request that came in."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def said(self) -> dict[str, Any]:
        """The message."""
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class Receiver:
    """What came in, in its order. `/500` answers so, `/stall` never does, the others are named below."""

    port: int = 0
    got: list[Got] = field(default_factory=list)
    connections: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    """What a path answers from now on, whatever it was before."""
    retry_after: str = "600"
    """What `/busy` asks for."""
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    def url(self, path: str = "/200", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    async def until(self, n: int) -> list[Got]:
        """Wait until so much came in."""
        async with asyncio.timeout(20), self._news:
            await self._news.wait_for(lambda: len(self.got) >= n)
        return self.got

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._answer(reader, writer):
                    pass
        finally:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        line, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in rest)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        path = line.split()[1]
        async with self._news:
            self.got.append(Got(path, headers, body))
            self._news.notify_all()
        writer.write(await self._said(path, writer))
        await writer.drain()
        return True

    async def _said(self, path: str, writer: asyncio.StreamWriter) -> bytes:
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
        return _response(self.answers.get(path) or int(path.strip("/").partition("?")[0]))


def _response(status: int, headers: str = "") -> bytes:
    return f"HTTP/1.1 {status} So\r\n{headers}content-length: 2\r\n\r\nok".encode()


@asynccontextmanager
async def receiving(host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """A receiver, as long as it is needed."""
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
