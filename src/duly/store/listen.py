"""LISTEN: a hint that there is something to look for. Polling alone must suffice, and does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress

import psycopg

log = logging.getLogger("duly.listen")
_PING = 10.0
_AGAIN = 1.0


class Listener:
    """One direct connection that hears notifications, and connects again when it was cut off."""

    def __init__(self, url: str, channels: Mapping[str, Callable[[str], None]]) -> None:
        self._url = url
        self._channels = dict(channels)
        self.listening = asyncio.Event()
        """Set while the connection listens."""

    async def run(self) -> None:
        """Listen until cancelled."""
        while True:
            try:
                await self._listen()
            except (psycopg.Error, OSError) as error:
                log.warning("not listening, polling only: %s", str(error).strip())
            self.listening.clear()
            await asyncio.sleep(_AGAIN)

    async def _listen(self) -> None:
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as conn:
            for channel in self._channels:
                await conn.execute(f"listen {channel}")
            self.listening.set()
            # What was notified while nobody listened is lost: look at everything once.
            self._hear_all()
            while True:
                with suppress(TimeoutError):
                    async for heard in conn.notifies(timeout=_PING):
                        self._channels[heard.channel](heard.payload)
                # A dead connection is silent like a quiet one; a question tells them apart.
                await asyncio.wait_for(conn.execute("select 1"), _PING)

    def _hear_all(self) -> None:
        for hear in self._channels.values():
            hear("")
