"""Count what the loops of a worker did, so that callers can wait for the event itself and not for a time."""

from __future__ import annotations

import asyncio
from collections import Counter


class LoopEvents:
    """Named events with their counts. Recording is cheap while no caller waits."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._waiting: dict[str, list[tuple[int, asyncio.Future[None]]]] = {}

    def record(self, event: str, times: int = 1) -> None:
        """Count the event and wake the callers that wait for this count."""
        self.counts[event] += times
        if event in self._waiting:
            waiting = self._waiting.pop(event)
            for count, future in waiting:
                if self.counts[event] >= count and not future.done():
                    future.set_result(None)
            if still := [entry for entry in waiting if not entry[1].done()]:
                self._waiting[event] = still

    async def wait(self, event: str, count: int = 1) -> None:
        """Return when the event has happened `count` times since the worker was created."""
        if self.counts[event] >= count:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(event, []).append((count, future))
        await future
