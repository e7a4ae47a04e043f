"""Limit failed sign-ins per address, in this process."""

from __future__ import annotations

import ipaddress

from fastapi import Request

from duly.features.throttle import Throttle
from duly.http.rate_limit import TooManyRequests

SIGN_IN_FAILURES_PER_SECOND, SIGN_IN_FAILURE_BURST = 1.0, 20.0
MAX_SIGN_IN_ADDRESSES = 10_000
_IPV6_CUSTOMER_BITS = 64
"""Bits of an IPv6 address that identify a customer, who chooses the others freely."""


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
