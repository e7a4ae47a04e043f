"""A minimal HTTP server for a few paths, for processes without another one: one request per connection."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

log = logging.getLogger("duly.observability")
_MAX_HEAD_BYTES = 8192
_TIMEOUT = 10.0


class PlainResponse(NamedTuple):
    """The response to one request."""

    status: int
    content_type: str
    body: bytes


Routes = Mapping[str, Callable[[], Awaitable[PlainResponse]]]


def health(reasons: Sequence[str] = ()) -> PlainResponse:
    """Return a health response in the format of the HTTP service; unavailable for any reason."""
    document = {"status": "unavailable" if reasons else "ok", "reasons": list(reasons)}
    return PlainResponse(503 if reasons else 200, "application/json", json.dumps(document).encode())


async def listen(routes: Routes, host: str, port: int) -> asyncio.Server:
    """Serve the routes at a TCP address."""
    return await asyncio.start_server(_serving(routes), host, port, limit=_MAX_HEAD_BYTES)


async def listen_at(routes: Routes, path: Path) -> asyncio.Server:
    """Serve the routes at a Unix socket, for processes of the same user."""
    return await asyncio.start_unix_server(_serving(routes), str(path), limit=_MAX_HEAD_BYTES)


async def get(path: Path, target: str) -> PlainResponse | None:
    """Request a path from the server at a Unix socket; return None if it does not respond."""
    try:
        async with asyncio.timeout(_TIMEOUT):
            reader, writer = await asyncio.open_unix_connection(str(path))
            try:
                writer.write(f"GET {target} HTTP/1.1\r\n\r\n".encode())
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                body = await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return None
    return PlainResponse(int(head[0].split()[1]), head[1].partition(": ")[2], body)


def _serving(routes: Routes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(2 * _TIMEOUT):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_encode(await _respond(routes, head.decode("latin-1"))))
                await writer.drain()
        writer.close()

    return serve


async def _respond(routes: Routes, head: str) -> PlainResponse:
    method, _, rest = head.partition(" ")
    route = routes.get(rest.partition(" ")[0].partition("?")[0])
    if route is None:
        return PlainResponse(404, "text/plain", b"")
    if method != "GET":
        return PlainResponse(405, "text/plain", b"")
    try:
        return await route()
    except Exception:
        log.exception("could not answer %s", rest.partition(" ")[0])
        return PlainResponse(500, "text/plain", b"")


def _encode(response: PlainResponse) -> bytes:
    phrase = HTTPStatus(response.status).phrase
    head = f"HTTP/1.1 {response.status} {phrase}\r\nContent-Type: {response.content_type}\r\n"
    return f"{head}Content-Length: {len(response.body)}\r\nConnection: close\r\n\r\n".encode() + response.body
