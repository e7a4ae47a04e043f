"""A proxy in front of PostgreSQL that can drop the response to a commit, or all traffic, or be away."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

_SOCKET = ".s.PGSQL.5432"


class Proxy:
    """A proxy to one database; connect to `url`."""

    def __init__(self, url: str) -> None:
        parts = conninfo_to_dict(url)
        # The path of a Unix socket must be short.
        self._home = Path(tempfile.mkdtemp(prefix="duly-proxy-"))
        self._server_path = f"{parts['host']}/.s.PGSQL.{parts.get('port', 5432)}"
        self.url = make_conninfo(url, host=str(self._home), port=5432)
        self._marker: bytes | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.dropped = asyncio.Event()
        """Set when a response was dropped."""
        self._blackholes: set[asyncio.Event] = set()
        self.refuses = 0
        """So many connections are closed as soon as they are made."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._accept, self._home / _SOCKET)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        shutil.rmtree(self._home)

    def drop_commit_response(self, marker: str) -> None:
        """Close the next connection that sends the marker and then COMMIT, once the server has committed."""
        self._marker = marker.encode()

    def drop_traffic(self) -> None:
        """Drop the traffic of all open connections from now on; new connections work."""
        for blackhole in self._blackholes:
            blackhole.set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The event loop holds only weak references to tasks.
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        if self.refuses:
            self.refuses -= 1
            to_client.close()
            return
        server, to_server = await asyncio.open_unix_connection(self._server_path)
        cut, blackhole = asyncio.Event(), asyncio.Event()
        self._blackholes.add(blackhole)
        directions = [
            asyncio.create_task(self._forward_requests(client, to_server, cut)),
            asyncio.create_task(self._forward_responses(server, to_client, cut)),
        ]
        blocked = asyncio.create_task(blackhole.wait())
        try:
            await asyncio.wait([*directions, blocked], return_when=asyncio.FIRST_COMPLETED)
            if blackhole.is_set():
                for direction in directions:
                    direction.cancel()
                await asyncio.Event().wait()
        finally:
            self._blackholes.discard(blackhole)
            blocked.cancel()
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
            for writer in (to_server, to_client):
                writer.close()
            for writer in (to_server, to_client):
                with suppress(OSError):
                    await writer.wait_closed()

    async def _forward_requests(
        self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter, cut: asyncio.Event
    ) -> None:
        marked = False
        while data := await client.read(1 << 16):
            marked = marked or (self._marker is not None and self._marker in data)
            if marked and self._marker is not None and b"COMMIT" in data:
                self._marker = None
                cut.set()
            to_server.write(data)

    async def _forward_responses(
        self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter, cut: asyncio.Event
    ) -> None:
        with suppress(ConnectionError):
            while data := await server.read(1 << 16):
                if cut.is_set():
                    self.dropped.set()
                    return
                to_client.write(data)
