"""LISTEN for notifications. They are hints: polling alone suffices."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress

import psycopg

log = logging.getLogger("duly.listen")
_PING_INTERVAL = 10.0
_RECONNECT_DELAY = 1.0


class Listener:
    """A direct connection that receives notifications, and reconnects after it was lost."""

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
                log.warning("listener disconnected, polling only: %s", str(error).strip())
            self.listening.clear()
            await asyncio.sleep(_RECONNECT_DELAY)

    async def _listen(self) -> None:
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as conn:
            for channel in self._channels:
                await conn.execute(f"listen {channel}")
            self.listening.set()
            # Notifications sent before LISTEN are lost: call every handler once.
            for handler in self._channels.values():
                handler("")
            while True:
                with suppress(TimeoutError):
                    async for notification in conn.notifies(timeout=_PING_INTERVAL):
                        self._channels[notification.channel](notification.payload)
                # A dead connection is as silent as a quiet one; a query tells them apart.
                await asyncio.wait_for(conn.execute("select 1"), _PING_INTERVAL)
