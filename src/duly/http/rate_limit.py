"""The rate limit of requests per org, in this process."""

from __future__ import annotations

import math
from uuid import UUID

from fastapi import Request

from duly.core.errors import LimitExceeded
from duly.core.principal import Principal
from duly.features.throttle import Throttle


class TooManyRequests(LimitExceeded):
    """The org exceeded its rate of requests, or an address its rate of failed sign-ins."""

    code = "rate.exceeded"

    def __init__(self, retry_after: int) -> None:
        super().__init__("too many requests", field="authorization", fix=f"retry after {retry_after} s")
        self.retry_after = retry_after


class RequestRateLimit:
    """The requests of each org; every response says how many are left."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._policy = f'"requests";q={burst};w={math.ceil(burst / per_second)}'.encode()
        self._throttle: Throttle[UUID] = Throttle(per_second, burst)

    def admit(self, request: Request, principal: Principal) -> None:
        """Count a request of the org and set the RateLimit headers; raise above the limit."""
        state = self._throttle.take(principal.org_id)
        request.scope["duly.headers"] = (
            (b"ratelimit-policy", self._policy),
            (b"ratelimit", f'"requests";r={int(state.tokens)};t={state.retry_after}'.encode()),
        )
        if not state.admitted:
            raise TooManyRequests(state.retry_after)
