"""Between a client and PostgreSQL: lets a commit happen, and loses the answer to it."""

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
    """One way to a database; `url` leads through it."""

    def __init__(self, url: str) -> None:
        parts = conninfo_to_dict(url)
        # The path of a unix socket has little room.
        self._home = Path(tempfile.mkdtemp(prefix="duly-proxy-"))
        self._server_path = f"{parts['host']}/.s.PGSQL.{parts.get('port', 5432)}"
        self.url = make_conninfo(url, host=str(self._home), port=5432)
        self._marker: bytes | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.lost = asyncio.Event()
        """Set when an answer was lost."""
        self._holes: set[asyncio.Event] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._accept, self._home / _SOCKET)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        shutil.rmtree(self._home)

    def lose_the_answer(self, marker: str) -> None:
        """Cut the next connection that commits after it has said this, once the commit is done."""
        self._marker = marker.encode()

    def swallow(self) -> None:
        """Let every connection there is lead nowhere from now on; new ones work."""
        for hole in self._holes:
            hole.set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Held here: the loop alone would forget it.
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_unix_connection(self._server_path)
        cut, hole = asyncio.Event(), asyncio.Event()
        self._holes.add(hole)
        ways = [
            asyncio.create_task(self._ask(client, to_server, cut)),
            asyncio.create_task(self._answer(server, to_client, cut)),
        ]
        swallowed = asyncio.create_task(hole.wait())
        try:
            await asyncio.wait([*ways, swallowed], return_when=asyncio.FIRST_COMPLETED)
            if hole.is_set():
                for way in ways:
                    way.cancel()
                await asyncio.Event().wait()
        finally:
            self._holes.discard(hole)
            swallowed.cancel()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for writer in (to_server, to_client):
                writer.close()
            for writer in (to_server, to_client):
                with suppress(OSError):
                    await writer.wait_closed()

    async def _ask(
        self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter, cut: asyncio.Event
    ) -> None:
        said = False
        while data := await client.read(1 << 16):
            said = said or (self._marker is not None and self._marker in data)
            if said and self._marker is not None and b"COMMIT" in data:
                self._marker = None
                cut.set()
            to_server.write(data)

    async def _answer(
        self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter, cut: asyncio.Event
    ) -> None:
        with suppress(ConnectionError):
            while data := await server.read(1 << 16):
                if cut.is_set():
                    self.lost.set()
                    return
                to_client.write(data)
