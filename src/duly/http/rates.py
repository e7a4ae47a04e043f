"""How many requests an org may make: a bucket for each, in this process; every answer says what is left."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from dataclasses import dataclass
from uuid import UUID

from fastapi import Request

from duly.model.access import Principal
from duly.model.errors import LimitExceeded

_MOST = 100_000


class TooManyRequests(LimitExceeded):
    """More requests than the org may make."""

    code = "rate.exceeded"

    def __init__(self, retry_after: int) -> None:
        super().__init__("too many requests", field="authorization", fix=f"wait for {retry_after} s")
        self.retry_after = retry_after


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Rates:
    """Buckets that fill at a rate, up to a burst. What was not used for long is forgotten: it is full."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = burst
        self._policy = f'"requests";q={burst};w={math.ceil(burst / per_second)}'.encode()
        self._buckets: OrderedDict[UUID, _Bucket] = OrderedDict()

    def admit(self, request: Request, who: Principal) -> None:
        """Take one request of the org, or raise; either way the answer says what is left."""
        bucket = self._filled(who.org_id)
        admitted = bucket.tokens >= 1
        if admitted:
            bucket.tokens -= 1
        wait = math.ceil(max(1 - bucket.tokens, 0) / self._per_second) or 1
        request.scope["duly.headers"] = (
            (b"ratelimit-policy", self._policy),
            (b"ratelimit", f'"requests";r={int(bucket.tokens)};t={wait}'.encode()),
        )
        if not admitted:
            raise TooManyRequests(wait)

    def _filled(self, org_id: UUID) -> _Bucket:
        now = time.monotonic()
        bucket = self._buckets.pop(org_id, None) or _Bucket(self._burst, now)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.at) * self._per_second)
        bucket.at = now
        self._buckets[org_id] = bucket
        while len(self._buckets) > _MOST:
            self._buckets.popitem(last=False)
        return bucket
