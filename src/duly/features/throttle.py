"""Token buckets by key: a pure throttle with its clock as an argument."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
MAX_THROTTLED_KEYS = 100_000


class ThrottleState(NamedTuple):
    """A bucket after a call: whether the call was admitted, and what is left."""

    admitted: bool
    tokens: float
    """May be negative after `charge`."""
    retry_after: int
    """Whole seconds until the next token, at least 1."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    updated_at: float


class Throttle(Generic[K]):
    """One token bucket per key; it refills at a constant rate up to `burst`.

    The least recently used keys are dropped above `max_keys`: a bucket that was not used for long is full.
    """

    def __init__(
        self,
        per_second: float,
        burst: float,
        *,
        max_keys: int = MAX_THROTTLED_KEYS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.per_second = per_second
        self.burst = burst
        self._max_keys = max_keys
        self._clock = clock
        self._buckets: OrderedDict[K, _Bucket] = OrderedDict()

    def take(self, key: K) -> ThrottleState:
        """Take a token if there is one."""
        bucket = self._refill(key)
        admitted = bucket.tokens >= 1
        if admitted:
            bucket.tokens -= 1
        return self._state(bucket, admitted)

    def peek(self, key: K) -> ThrottleState:
        """Return whether there is a token, without taking it."""
        bucket = self._buckets.get(key)
        tokens = self.burst if bucket is None else self._refilled(bucket)
        return self._state(_Bucket(tokens, 0.0), tokens >= 1)

    def charge(self, key: K) -> ThrottleState:
        """Take a token even if there is none: the bucket goes into debt."""
        bucket = self._refill(key)
        bucket.tokens -= 1
        return self._state(bucket, admitted=True)

    def _refill(self, key: K) -> _Bucket:
        bucket = self._buckets.pop(key, None)
        if bucket is None:
            bucket = _Bucket(self.burst, self._clock())
        else:
            bucket.tokens, bucket.updated_at = self._refilled(bucket), self._clock()
        self._buckets[key] = bucket
        while len(self._buckets) > self._max_keys:
            self._buckets.popitem(last=False)
        return bucket

    def _refilled(self, bucket: _Bucket) -> float:
        return min(self.burst, bucket.tokens + (self._clock() - bucket.updated_at) * self.per_second)

    def _state(self, bucket: _Bucket, admitted: bool) -> ThrottleState:
        wait = math.ceil(max(1 - bucket.tokens, 0) / self.per_second)
        return ThrottleState(admitted, bucket.tokens, wait or 1)
