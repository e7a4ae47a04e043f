"""Readers of streams on bare sockets: cheap enough for hundreds, and rude enough to hang up in mid-word."""

from __future__ import annotations

import asyncio
import re
import resource
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest

_EVENT = re.compile(rb"id: (\d+)\nevent: ([\w.]+)\ndata: [^\n]*\n\n")
_END = b"job.completed"


@dataclass
class StreamReader:
    """Somebody who reads the events of a job over as many connections as it takes."""

    address: str
    path: str
    key: str
    seen: list[int] = field(default_factory=list)
    ended: bool = False
    connections: int = 0

    async def listen(self, most: int | None = None) -> None:
        """Read on where it was left, to the end or until so many bytes have come; then hang up."""
        _, writer = pair = await self.connect()
        try:
            await self.read(pair[0], most)
        finally:
            writer.transport.abort()

    async def connect(self, buffer: int | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection on which the stream was asked for; it holds so many bytes that nobody has read."""
        self.connections += 1
        place = urlsplit(self.address)
        sock = socket.socket()
        if buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, (place.hostname, place.port))
        pair = await asyncio.open_connection(sock=sock, limit=buffer or 2**16)
        known = f"last-event-id: {self.seen[-1]}\r\n" if self.seen else ""
        pair[1].write(
            f"GET {self.path} HTTP/1.1\r\nhost: {place.netloc}\r\nauthorization: Bearer {self.key}\r\n"
            f"accept: text/event-stream\r\nconnection: close\r\n{known}\r\n".encode()
        )
        return pair

    async def read(self, reader: asyncio.StreamReader, most: int | None = None) -> None:
        """Take what comes; of an event that did not come whole, nothing."""
        came = b""
        while most is None or len(came) < most:
            more = await reader.read(2**16 if most is None else most - len(came))
            if not more:
                break
            came += more
        assert came == b"" or came.startswith(b"HTTP/1.1 200"[: len(came)]), came
        for number, kind in _EVENT.findall(came):
            self.seen.append(int(number))
            self.ended |= kind == _END


@pytest.fixture
def many_files() -> Iterator[None]:
    """Room for a thousand connections in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip(f"no more than {hard} open files are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
