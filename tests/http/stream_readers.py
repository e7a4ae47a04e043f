"""Event stream readers on plain sockets: cheap enough for hundreds, able to disconnect in mid-event."""

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
    """Reads the events of a job over any number of connections."""

    address: str
    path: str
    key: str
    event_seqs: list[int] = field(default_factory=list)
    ended: bool = False
    connections: int = 0

    async def listen(self, max_bytes: int | None = None) -> None:
        """Resume after the last event, read to the end or up to `max_bytes`, and disconnect."""
        _, writer = pair = await self.connect()
        try:
            await self.read(pair[0], max_bytes)
        finally:
            writer.transport.abort()

    async def connect(self, buffer: int | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection and request the stream; `buffer` limits its receive buffer, in bytes."""
        self.connections += 1
        url = urlsplit(self.address)
        sock = socket.socket()
        if buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, (url.hostname, url.port))
        pair = await asyncio.open_connection(sock=sock, limit=buffer or 2**16)
        last_event_id = f"last-event-id: {self.event_seqs[-1]}\r\n" if self.event_seqs else ""
        pair[1].write(
            f"GET {self.path} HTTP/1.1\r\nhost: {url.netloc}\r\nauthorization: Bearer {self.key}\r\n"
            f"accept: text/event-stream\r\nconnection: close\r\n{last_event_id}\r\n".encode()
        )
        return pair

    async def read(self, reader: asyncio.StreamReader, max_bytes: int | None = None) -> None:
        """Read the complete events; ignore an incomplete one at the end."""
        received = b""
        while max_bytes is None or len(received) < max_bytes:
            chunk = await reader.read(2**16 if max_bytes is None else max_bytes - len(received))
            if not chunk:
                break
            received += chunk
        assert received == b"" or received.startswith(b"HTTP/1.1 200"[: len(received)]), received
        for number, kind in _EVENT.findall(received):
            self.event_seqs.append(int(number))
            self.ended |= kind == _END


@pytest.fixture
def many_files() -> Iterator[None]:
    """Raise the limit of open files for a thousand connections in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip(f"no more than {hard} open files are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
