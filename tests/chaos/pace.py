"""Pauses of the load and of the faults: here time itself is what is asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress


async def pause(seconds: float, unless: asyncio.Event | None = None) -> None:
    """Let time pass; less of it if the event is set meanwhile."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await (unless or asyncio.Event()).wait()


async def tries(seconds: float, every: float = 0.1) -> AsyncIterator[float]:
    """Again and again until the time is over; the seconds left."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        yield left
        await pause(every)
