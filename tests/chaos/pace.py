"""Pauses of the load and of the faults: here the passing of time itself is needed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress


async def pause(seconds: float, unless: asyncio.Event | None = None) -> None:
    """Wait for this long, or until the event is set."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await (unless or asyncio.Event()).wait()


async def tries(seconds: float, every: float = 0.1) -> AsyncIterator[float]:
    """Yield the seconds left, again and again until the time is over."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        yield left
        await pause(every)
