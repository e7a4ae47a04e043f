"""TTL caches for one value or one per key; concurrent callers share one lookup."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")
_MAX_KEYS = 1_000


class TtlCache(Generic[T]):
    """Caches the value of one lookup."""

    def __init__(self, lookup: Callable[[], Awaitable[T]], ttl: float = 0.0) -> None:
        self._lookup = lookup
        self._ttl = ttl
        self._lock = asyncio.Lock()
        self._value: T | None = None
        self.updated_at = float("-inf")

    async def get(self, max_age: float | None = None) -> T:
        """Return the value, at most `max_age` seconds old; by default the `ttl` of the cache."""
        async with self._lock:
            if self._value is None or time.monotonic() > self.updated_at + (max_age or self._ttl):
                self._value = await self._lookup()
                self.updated_at = time.monotonic()
            return self._value


class KeyedTtlCache(Generic[K, T]):
    """Caches a value per key; evicts the oldest."""

    def __init__(self, lookup: Callable[[K], Awaitable[T]]) -> None:
        self._lookup = lookup
        self._caches: dict[K, TtlCache[T]] = {}

    async def get(self, key: K, max_age: float) -> T:
        """Return the value of a key, at most `max_age` seconds old; 0 bypasses the cache."""
        if not max_age:
            return await self._lookup(key)
        cache = self._caches.get(key)
        if cache is None:
            if len(self._caches) >= _MAX_KEYS:
                del self._caches[min(self._caches, key=lambda known: self._caches[known].updated_at)]
            cache = self._caches[key] = TtlCache(lambda: self._lookup(key))
        return await cache.get(max_age)
