"""The way to where messages may go, and to nowhere else.

A name is resolved once, all its addresses are looked at, and the connection goes to one that was looked at:
a name that answers otherwise a moment later leads nowhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address
from typing import Any

import httpcore

from duly.features.webhooks.allowed_urls import Places
from duly.features.webhooks.bounded_connection import Bounded
from duly.features.webhooks.public_addresses import Address, is_public
from duly.features.webhooks.resolver import Lookups

Resolver = Callable[[str, int], Awaitable[list[str]]]
"""All addresses of a host, as texts."""

_CONNECTING = 5.0
_NOT_PUBLIC = "the host has no public address"
"""Also of names that do not exist: nobody learns here which names there are inside."""


class Refused(httpcore.ConnectError):
    """A place that nothing is sent to."""


class Guard(httpcore.AsyncNetworkBackend):
    """Makes the connections of the sender, and refuses those that lead where they must not."""

    def __init__(self, places: Places, resolve: Resolver | None = None) -> None:
        self.check_url = places.check_url
        self._places = places
        self._resolve = resolve or Lookups().resolve
        self._way = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to an address of the host; to none if one of them must not be reached."""
        try:
            async with asyncio.timeout(timeout or _CONNECTING):
                found = await self._addresses(host, port)
        except TimeoutError:
            raise httpcore.ConnectTimeout("the name was not resolved in time") from None
        trouble: Exception = Refused(_NOT_PUBLIC)
        for address in found[:2]:
            try:
                way = self._way.connect_tcp(str(address), port, timeout, local_address, socket_options)
                return Bounded(await way)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                trouble = error
        raise trouble

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        """Refused: that is no host."""
        raise Refused("not a host")

    async def sleep(self, seconds: float) -> None:
        """Only for who tries to connect again, which nobody does here."""
        await asyncio.sleep(seconds)

    async def _addresses(self, host: str, port: int) -> list[Address]:
        """All of them, or none: a name that has one inside as well is not meant for us."""
        try:
            found = [ip_address(text.partition("%")[0]) for text in await self._resolve(host, port)]
        except (OSError, UnicodeError):
            raise Refused(_NOT_PUBLIC) from None
        if not self._places.is_allowed(host) and not all(
            self._places.is_near(one) or is_public(one) for one in found
        ):
            raise Refused(_NOT_PUBLIC)
        return found
