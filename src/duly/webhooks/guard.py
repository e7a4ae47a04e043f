"""Where messages may go: to public addresses, and to what the installation allows.

A name is resolved once, all its addresses are looked at, and the connection goes to one that was looked at:
a name that answers otherwise a moment later leads nowhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpcore

from duly.model.errors import ContractError
from duly.webhooks.addresses import Address, is_public, literal
from duly.webhooks.bounded import Bounded
from duly.webhooks.lookups import Lookups

Resolver = Callable[[str, int], Awaitable[list[str]]]
"""All addresses of a host, as texts."""

_LONGEST = 2_000
_NEVER = frozenset(' "<>\\^`{|}')
_CONNECTING = 5.0
_NO_ADDRESS = "not the address of a web service"
_NOT_PUBLIC = "the host has no public address"
"""Also of names that do not exist: nobody learns here which names there are inside."""


class Refused(httpcore.ConnectError):
    """A place that nothing is sent to."""


class Guard(httpcore.AsyncNetworkBackend):
    """Makes the connections of the sender, and refuses those that lead where they must not."""

    def __init__(self, allow: Iterable[str] = (), resolve: Resolver | None = None) -> None:
        """`allow`: hosts, addresses and networks that may be private, and may be spoken to without TLS."""
        self._names, self._nets = _allowed(allow)
        self._resolve = resolve or Lookups().resolve
        self._way = httpcore.AnyIOBackend()

    def check_url(self, url: str) -> str:
        """The address of an endpoint, if nothing is to be said against it before the network is asked."""
        parts = _split(url)
        if parts.username is not None or parts.password is not None:
            raise _wrong("it holds a user or a password", "leave them out: messages are signed")
        if parts.fragment:
            raise _wrong("it has a fragment, which is never sent", "leave out what follows the #")
        host, port = parts.hostname or "", parts.port
        if self._is_allowed(host):
            return url
        if parts.scheme != "https":
            raise _wrong("plain HTTP can be read on its way", "use https://, or have the host allowed")
        if port is not None and port != 443 and port < 1024:
            raise _wrong(f"port {port} belongs to other services", "use 443, or one from 1024 on")
        address = literal(host)
        if address is not None and not is_public(address):
            raise _wrong("not a public address", "name a public host, or have this one allowed")
        return url

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
        if not self._is_allowed(host) and not all(self._is_near(one) or is_public(one) for one in found):
            raise Refused(_NOT_PUBLIC)
        return found

    def _is_allowed(self, host: str) -> bool:
        address = literal(host)
        return host.rstrip(".").lower() in self._names if address is None else self._is_near(address)

    def _is_near(self, address: Address) -> bool:
        return any(address in net for net in self._nets if net.version == address.version)


def _split(url: object) -> SplitResult:
    if not isinstance(url, str) or len(url) > _LONGEST or not _is_plain(url):
        raise _wrong(_NO_ADDRESS, f"write https://host/path, ASCII only, up to {_LONGEST} characters")
    try:
        parts = urlsplit(url)
        if parts.scheme in ("https", "http") and parts.hostname and parts.port != 0:
            return parts
    except ValueError:
        pass
    raise _wrong(_NO_ADDRESS, "write https://host/path")


def _is_plain(url: str) -> bool:
    return url.isascii() and url.isprintable() and not _NEVER.intersection(url)


def _allowed(allow: Iterable[str]) -> tuple[frozenset[str], list[IPv4Network | IPv6Network]]:
    names, nets = set(), []
    for one in allow:
        try:
            nets.append(ip_network(one, strict=False))
        except ValueError:
            names.add(one.rstrip(".").lower())
    return frozenset(names), nets


def _wrong(said: str, fix: str) -> ContractError:
    return ContractError(said, field="url", fix=fix)
