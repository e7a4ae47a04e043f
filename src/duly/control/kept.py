"""Answers that may be some seconds old, so that who asks often costs little."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """One answer. Whoever asks while it is looked for waits for the same."""

    def __init__(self, ask: Callable[[], Awaitable[T]], lasts: float) -> None:
        self._ask = ask
        self._lasts = lasts
        self._asking = asyncio.Lock()
        self._answer: tuple[float, T] | None = None

    async def get(self) -> T:
        """What was found, now or a moment ago."""
        async with self._asking:
            if self._answer is None or time.monotonic() > self._answer[0] + self._lasts:
                self._answer = (time.monotonic(), await self._ask())
            return self._answer[1]
