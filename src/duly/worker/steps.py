"""Loops say what they did, so that whoever waits for it waits for the thing itself and not for a time."""

from __future__ import annotations

import asyncio
from collections import Counter


class Steps:
    """Named steps, counted. Cheap when nobody waits."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._waiting: list[tuple[str, int, asyncio.Future[None]]] = []

    def announce(self, step: str, times: int = 1) -> None:
        """It happened."""
        self.counts[step] += times
        if self._waiting:
            for name, count, future in self._waiting:
                if self.counts[name] >= count and not future.done():
                    future.set_result(None)
            self._waiting = [entry for entry in self._waiting if not entry[2].done()]

    async def wait(self, step: str, count: int = 1) -> None:
        """Return when it has happened `count` times since the beginning."""
        if self.counts[step] >= count:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((step, count, future))
        await future
