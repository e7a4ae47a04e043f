"""Rate limits of this process: requests per org, and failed sign-ins per address."""

from __future__ import annotations

import ipaddress
import math
from uuid import UUID

from fastapi import Request

from duly.core.errors import LimitExceeded
from duly.core.principal import Principal
from duly.features.throttle import Throttle

SIGN_IN_FAILURES_PER_SECOND, SIGN_IN_FAILURE_BURST = 1.0, 20.0
MAX_SIGN_IN_ADDRESSES = 10_000
_IPV6_CUSTOMER_BITS = 64
"""Bits of an IPv6 address that identify a customer, who chooses the others freely."""


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


class SignInThrottle:
    """Failed sign-ins of each address: guessing credentials must not keep the database busy."""

    def __init__(self) -> None:
        self._failures: Throttle[str] = Throttle(
            SIGN_IN_FAILURES_PER_SECOND, SIGN_IN_FAILURE_BURST, max_keys=MAX_SIGN_IN_ADDRESSES
        )

    def admit(self, request: Request) -> None:
        """Raise if the address failed too often."""
        state = self._failures.peek(_client_address(request))
        if not state.admitted:
            raise TooManyRequests(state.retry_after)

    def record_failure(self, request: Request) -> None:
        """Count a failed sign-in of the address."""
        self._failures.charge(_client_address(request))


def _client_address(request: Request) -> str:
    host = request.client.host if request.client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, _IPV6_CUSTOMER_BITS), strict=False))
    return host
