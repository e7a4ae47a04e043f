"""A server for a few paths, for processes that have no other: one request, one answer, and that is all."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

log = logging.getLogger("duly.observe")
_LONGEST = 8192
_PATIENCE = 10.0


class Answer(NamedTuple):
    """What is said to one request."""

    status: int
    content_type: str
    body: bytes


Routes = Mapping[str, Callable[[], Awaitable[Answer]]]


def health(reasons: Sequence[str] = ()) -> Answer:
    """Well, or why not; as the HTTP service says it."""
    said = {"status": "unavailable" if reasons else "ok", "reasons": list(reasons)}
    return Answer(503 if reasons else 200, "application/json", json.dumps(said).encode())


async def listen(routes: Routes, host: str, port: int) -> asyncio.Server:
    """Answer at an address of the network."""
    return await asyncio.start_server(_serving(routes), host, port, limit=_LONGEST)


async def listen_at(routes: Routes, path: Path) -> asyncio.Server:
    """Answer at a socket in the file system, for processes of the same user."""
    return await asyncio.start_unix_server(_serving(routes), str(path), limit=_LONGEST)


async def ask(path: Path, target: str) -> Answer | None:
    """What the server at that socket says; None if it does not."""
    try:
        async with asyncio.timeout(_PATIENCE):
            reader, writer = await asyncio.open_unix_connection(str(path))
            try:
                writer.write(f"GET {target} HTTP/1.1\r\n\r\n".encode())
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                body = await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return None
    return Answer(int(head[0].split()[1]), head[1].partition(": ")[2], body)


def _serving(routes: Routes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(2 * _PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_written(await _answer(routes, head.decode("latin-1"))))
                await writer.drain()
        writer.close()

    return serve


async def _answer(routes: Routes, head: str) -> Answer:
    method, _, rest = head.partition(" ")
    route = routes.get(rest.partition(" ")[0].partition("?")[0])
    if route is None:
        return Answer(404, "text/plain", b"")
    if method != "GET":
        return Answer(405, "text/plain", b"")
    try:
        return await route()
    except Exception:
        log.exception("%s could not be answered", rest.partition(" ")[0])
        return Answer(500, "text/plain", b"")


def _written(answer: Answer) -> bytes:
    phrase = HTTPStatus(answer.status).phrase
    head = f"HTTP/1.1 {answer.status} {phrase}\r\nContent-Type: {answer.content_type}\r\n"
    return f"{head}Content-Length: {len(answer.body)}\r\nConnection: close\r\n\r\n".encode() + answer.body
