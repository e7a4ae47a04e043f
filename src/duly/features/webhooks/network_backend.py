"""The network of the sender: connects to allowed addresses only, and bounds lookups and responses.

A host name is resolved once, all its addresses are checked, and the connection goes to a checked address: a
name that resolves differently a moment later (DNS rebinding) leads nowhere else.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from contextlib import ExitStack
from contextvars import ContextVar
from ipaddress import ip_address
from threading import Thread
from typing import Any
from uuid import UUID
from weakref import WeakValueDictionary

import httpcore

from duly.features.webhooks.allowed_destinations import Address, AllowedUrls, is_public

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Returns all addresses of a host."""
lookup_org: ContextVar[UUID | None] = ContextVar("lookup_org", default=None)
"""The org whose hosts are looked up."""
MAX_LOOKUPS_PER_ORG = 4
_MAX_LOOKUPS = 64
_LOOKUP_QUEUE_TIMEOUT = 3.0
_CONNECT_TIMEOUT = 5.0
_MAX_ADDRESSES = 2
_MAX_RESPONSE_BYTES = 2**15
_MAX_READ_BYTES = 2**12
"""Bytes per read: they are parsed without a pause."""
_NOT_PUBLIC = "the host has no public address"
"""Also for names that do not exist: the error must not reveal which internal names exist."""


class ForbiddenAddress(httpcore.ConnectError):
    """The host has an address that Duly must not connect to."""


class TooManyLookups(httpcore.ConnectError):
    """No lookup was free in time; the host is not the cause."""


class NetworkGuard(httpcore.AsyncNetworkBackend):
    """Opens the connections of the sender; refuses those to forbidden addresses."""

    def __init__(self, allowed: AllowedUrls, resolve: Resolve | None = None) -> None:
        self.allowed = allowed
        self._resolve = resolve or Resolver().resolve
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to an address of the host; refuse the host if one of its addresses is forbidden."""
        try:
            async with asyncio.timeout(timeout or _CONNECT_TIMEOUT):
                addresses = await self._addresses(host, port)
        except TimeoutError:
            raise httpcore.ConnectTimeout("the host name was not resolved in time") from None
        failure: Exception = ForbiddenAddress(_NOT_PUBLIC)
        for address in addresses[:_MAX_ADDRESSES]:
            try:
                return BoundedStream(
                    await self._backend.connect_tcp(
                        str(address), port, timeout, local_address, socket_options
                    )
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Refuse: a socket is not a host."""
        raise ForbiddenAddress("not a host")

    async def sleep(self, seconds: float) -> None:
        """Sleep before a retry of httpcore, which the sender does not use."""
        await asyncio.sleep(seconds)

    async def _addresses(self, host: str, port: int) -> list[Address]:
        """Return all addresses of a host. Refuse a name that also has a private address: it is internal."""
        try:
            addresses = [ip_address(text.partition("%")[0]) for text in await self._resolve(host, port)]
        except (OSError, UnicodeError):
            raise ForbiddenAddress(_NOT_PUBLIC) from None
        if not self.allowed.allows_host(host) and not all(
            self.allowed.allows_address(address) or is_public(address) for address in addresses
        ):
            raise ForbiddenAddress(_NOT_PUBLIC)
        return addresses


class Resolver:
    """Resolves host names in threads of its own, with a limit per org.

    A lookup cannot be cancelled: its thread stays busy after the caller has given up. The slot is released
    when the thread ends, so an org whose hosts never resolve only delays itself. The threads are daemons: the
    process does not wait for them when it ends.
    """

    def __init__(self) -> None:
        self._all_slots = asyncio.Semaphore(_MAX_LOOKUPS)
        self._org_slots: WeakValueDictionary[UUID | None, asyncio.Semaphore] = WeakValueDictionary()

    async def resolve(self, host: str, port: int) -> list[str]:
        """Return all addresses of a host."""
        with ExitStack() as slots:
            await self._acquire(slots)
            lookup = asyncio.wrap_future(_start_lookup(host, port))
            held = slots.pop_all()

        def release(lookup: asyncio.Future[list[str]]) -> None:
            held.close()
            if not lookup.cancelled():
                lookup.exception()  # retrieved, even if the caller has given up

        lookup.add_done_callback(release)
        return await asyncio.shield(lookup)

    async def _acquire(self, slots: ExitStack) -> None:
        org_slots = self._org_slots.setdefault(lookup_org.get(), asyncio.Semaphore(MAX_LOOKUPS_PER_ORG))
        try:
            async with asyncio.timeout(_LOOKUP_QUEUE_TIMEOUT):
                for semaphore in (org_slots, self._all_slots):
                    await semaphore.acquire()
                    slots.callback(semaphore.release)
        except TimeoutError:
            raise TooManyLookups("too many host names are being resolved") from None


def _start_lookup(host: str, port: int) -> Future[list[str]]:
    future: Future[list[str]] = Future()

    def look_up() -> None:
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            future.set_result(list(dict.fromkeys(str(entry[4][0]) for entry in entries)))
        except Exception as error:
            future.set_exception(error)

    Thread(target=look_up, name="duly-lookup", daemon=True).start()
    return future


class BoundedStream(httpcore.AsyncNetworkStream):
    """A stream that fails after a response of bounded size, including any number of interim responses."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._bytes_read = 0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read the next part of the response; raise if it is too long."""
        if self._bytes_read >= _MAX_RESPONSE_BYTES:
            raise httpcore.ReadError("the response is too long")
        part = await self._stream.read(min(max_bytes, _MAX_READ_BYTES), timeout)
        self._bytes_read += len(part)
        return part

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write a part of a request; what follows is another response."""
        self._bytes_read = 0
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Return the same stream over TLS."""
        return BoundedStream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """Return information about the connection."""
        return self._stream.get_extra_info(info)
