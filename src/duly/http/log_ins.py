"""How often an address may fail to log in: whoever guesses must not keep the database busy."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict

from fastapi import Request

from duly.http.rates import TooManyRequests

_PER_SECOND, _BURST, _MOST = 1.0, 20.0, 10_000
_ONE_HOUSEHOLD = 64
"""Bits of an IPv6 address that belong to one customer: the rest they choose as they like."""


class LogIns:
    """Remembers failures of each address for a while; those of the longest ago are forgotten first."""

    def __init__(self) -> None:
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def admit(self, request: Request) -> None:
        """Raise if it has failed too often."""
        left = self._filled(_address(request))
        if left < 1:
            raise TooManyRequests(max(1, math.ceil((1 - left) / _PER_SECOND)))

    def failed(self, request: Request) -> None:
        """Remember it for a while."""
        address = _address(request)
        left = self._filled(address) - 1
        self._left.pop(address, None)
        self._left[address] = (left, time.monotonic())
        while len(self._left) > _MOST:
            self._left.popitem(last=False)

    def _filled(self, address: str) -> float:
        left, at = self._left.get(address, (_BURST, 0.0))
        return min(_BURST, left + (time.monotonic() - at) * _PER_SECOND)


def _address(request: Request) -> str:
    host = request.client.host if request.client else ""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, _ONE_HOUSEHOLD), strict=False))
    return host
