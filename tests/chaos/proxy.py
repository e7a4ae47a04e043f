"""A proxy process between all clients and PostgreSQL: it cuts, delays and drops, and knows the primary.

It reads commands as lines of JSON from stdin, and answers each with one on stdout.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.chaos.processes import python, start


class Way(asyncio.Protocol):
    """One end of a connection; its data goes to the other end, in order, maybe late, maybe never."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.transport: asyncio.Transport | None = None
        self.other: Way | None = None
        self._late: deque[tuple[float, bytes]] = deque()
        self._early: list[bytes] = []
        self.swallows = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if self is self._link.client:
            transport.pause_reading()
            self._link.proxy.connect(self._link)

    def data_received(self, data: bytes) -> None:
        loop, delay = asyncio.get_running_loop(), self._link.proxy.delay
        if self.swallows:
            return
        if not self._is_other_connected:
            # Before Python 3.11.3 a transport reads although it was paused when its connection was made.
            self._early.append(data)
            return
        if not delay and not self._late:
            self._send(data)
            return
        due = max(loop.time() + delay, self._late[-1][0] if self._late else 0.0)
        self._late.append((due, data))
        loop.call_at(due, self._send_late)

    def _send_late(self) -> None:
        if self._late:
            self._send(self._late.popleft()[1])

    @property
    def _is_other_connected(self) -> bool:
        return self.other is not None and self.other.transport is not None

    def send_early(self) -> None:
        """Pass on what came before the other end was connected."""
        early, self._early = self._early, []
        for data in early:
            self.data_received(data)

    def _send(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._link.cut()


class Link:
    """One client and its backend."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.client, self.server = Way(self), Way(self)
        self.client.other, self.server.other = self.server, self.client
        self.held = False

    def cut(self) -> None:
        self.proxy.links.discard(self)
        for way in (self.client, self.server):
            if way.transport is not None:
                way.transport.abort()

    def hold(self, *, on: bool) -> None:
        """Hold all data back."""
        self.held = on
        for way in (self.client, self.server):
            if way.transport is not None and not way.transport.is_closing():
                if on and way.transport.is_reading():
                    way.transport.pause_reading()
                elif not on:
                    way.transport.resume_reading()


class Proxy:
    """All connections, and their faults."""

    def __init__(self) -> None:
        self.links: set[Link] = set()
        self.delay = 0.0
        self._target = ""
        self._holds_new = False
        self._deaf_new = False
        self._tasks: set[asyncio.Task[None]] = set()

    def accept(self) -> Way:
        link = Link(self)
        self.links.add(link)
        return link.client

    def connect(self, link: Link) -> None:
        """Connect a new client to the server."""
        task = asyncio.get_running_loop().create_task(self._connect(link))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, link: Link) -> None:
        assert link.client.transport is not None
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: link.server, self._target)
        except OSError:
            link.cut()
            return
        if link not in self.links:
            link.cut()
        elif self._holds_new:
            link.hold(on=True)
        else:
            link.server.swallows = self._deaf_new
            link.client.send_early()
            if not link.client.transport.is_closing():
                link.client.transport.resume_reading()

    # Commands.

    def target(self, path: str) -> None:
        """Route to this server from now on; cut connections to other servers."""
        self._target = path
        self.cut(1.0, 0)

    def cut(self, share: float, seed: int) -> None:
        """Cut this many connections."""
        for link in self._sample(share, seed):
            link.cut()

    def slow(self, seconds: float) -> None:
        """Delay everything by this much, each way."""
        self.delay = seconds

    def hole(self, share: float, seed: int) -> None:
        """Drop all data of this many connections, and of all new ones."""
        self._holds_new = True
        for link in self._sample(share, seed):
            link.hold(on=True)

    def deaf(self, share: float, seed: int) -> None:
        """Deliver requests, but no answers, of this many connections and all new ones."""
        self._deaf_new = True
        for link in self._sample(share, seed):
            link.server.swallows = True

    def heal(self, then: str) -> None:
        """End all faults. Held data arrives late, is cut off, or stays lost."""
        self.delay, self._holds_new, self._deaf_new = 0.0, False, False
        for link in list(self.links):
            if link.server.swallows or (link.held and then == "cut"):
                link.cut()
            elif link.held and then == "resume":
                link.hold(on=False)

    def _sample(self, share: float, seed: int) -> list[Link]:
        links = list(self.links)
        return random.Random(seed).sample(links, round(share * len(links)))


async def serve() -> None:
    """Serve until stdin is closed."""
    proxy, loop = Proxy(), asyncio.get_running_loop()
    server = await loop.create_server(proxy.accept, "127.0.0.1", 0)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        do: Callable[..., None] = getattr(proxy, command.pop("do"))
        do(**command)
        print(json.dumps({"links": len(proxy.links)}), flush=True)


class Control:
    """The controlling end of the proxy."""

    def __init__(self, log: Path, env: dict[str, str]) -> None:
        self.process: subprocess.Popen[bytes] = start(python("tests.chaos.proxy"), log, env=env, talks=True)
        self.port: int = self._hear()["port"]

    def tell(self, do: str, **values: Any) -> int:
        """Send a command; return the number of connections afterwards."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **values}).encode() + b"\n")
        self.process.stdin.flush()
        return int(self._hear()["links"])

    def _hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()


if __name__ == "__main__":
    asyncio.run(serve())
