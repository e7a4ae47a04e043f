"""Answers that may be some seconds old, so that who asks often costs little."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")
_MOST = 1_000


class Kept(Generic[T]):
    """One answer. Whoever asks while it is looked for waits for the same."""

    def __init__(self, ask: Callable[[], Awaitable[T]], lasts: float = 0.0) -> None:
        self._ask = ask
        self._lasts = lasts
        self._asking = asyncio.Lock()
        self._answer: T | None = None
        self.answered_at = float("-inf")

    async def get(self, age: float | None = None) -> T:
        """What was found, now or within so many seconds."""
        async with self._asking:
            if self._answer is None or time.monotonic() > self.answered_at + (age or self._lasts):
                self._answer = await self._ask()
                self.answered_at = time.monotonic()
            return self._answer


class KeptByKey(Generic[K, T]):
    """An answer for each key; the oldest are forgotten."""

    def __init__(self, ask: Callable[[K], Awaitable[T]]) -> None:
        self._ask = ask
        self._kept: dict[K, Kept[T]] = {}

    async def get(self, key: K, age: float) -> T:
        """What was found for this key, now or within so many seconds."""
        if not age:
            return await self._ask(key)
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) >= _MOST:
                del self._kept[min(self._kept, key=lambda known: self._kept[known].answered_at)]
            kept = self._kept[key] = Kept(lambda: self._ask(key))
        return await kept.get(age)
