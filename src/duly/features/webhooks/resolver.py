"""Looks up the addresses of hosts: in threads of its own, of which nobody has more than a few.

A lookup cannot be stopped: when nobody waits for it any more, its thread is busy all the same. So a place is
free again when the thread is, and whoever names hosts that take for ever waits for none but themselves. Nor
does the end of the process wait for them.
"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import Future
from contextlib import ExitStack
from contextvars import ContextVar
from threading import Thread
from uuid import UUID
from weakref import WeakValueDictionary

import httpcore

owner: ContextVar[UUID | None] = ContextVar("owner", default=None)
"""The org that hosts are looked up for."""
EACH = 4
"""Lookups of an org at a time."""
_THREADS = 64
_TURN = 3.0


class Crowded(httpcore.ConnectError):
    """No place was free in time; the host has nothing to do with it."""


class Lookups:
    """Resolves names as the system does."""

    def __init__(self) -> None:
        self._threads = asyncio.Semaphore(_THREADS)
        self._places: WeakValueDictionary[UUID | None, asyncio.Semaphore] = WeakValueDictionary()

    async def resolve(self, host: str, port: int) -> list[str]:
        """All addresses of a host, as texts."""
        with ExitStack() as taken:
            await self._take_turn(taken)
            look = asyncio.wrap_future(_begin(host, port))
            held = taken.pop_all()

        def ended(look: asyncio.Future[list[str]]) -> None:
            held.close()
            if not look.cancelled():
                look.exception()  # seen, also where nobody waits for it any more

        look.add_done_callback(ended)
        return await asyncio.shield(look)

    async def _take_turn(self, taken: ExitStack) -> None:
        place = self._places.setdefault(owner.get(), asyncio.Semaphore(EACH))
        try:
            async with asyncio.timeout(_TURN):
                for one in (place, self._threads):
                    await one.acquire()
                    taken.callback(one.release)
        except TimeoutError:
            raise Crowded("too many hosts are being looked up") from None


def _begin(host: str, port: int) -> Future[list[str]]:
    found: Future[list[str]] = Future()
    Thread(target=_look_up, args=(host, port, found), name="duly-lookup", daemon=True).start()
    return found


def _look_up(host: str, port: int, found: Future[list[str]]) -> None:
    try:
        all_of_them = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        found.set_result(list(dict.fromkeys(str(one[4][0]) for one in all_of_them)))
    except Exception as error:
        found.set_exception(error)
