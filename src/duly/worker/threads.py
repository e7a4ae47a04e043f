"""Threads for handlers that are not async. A thread that does not come back is replaced, not waited for."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

log = logging.getLogger("duly.worker")


class _Order(NamedTuple):
    work: Callable[[], Any]
    name: str
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


class ThreadPool:
    """Daemon threads, made when needed: a stuck one never keeps the process from ending."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._orders: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        self._busy: set[asyncio.Future[Any]] = set()
        self._running: dict[asyncio.Future[Any], str] = {}
        # A thread that finishes and a loop that gives it up must agree on who was first.
        self._lock = threading.Lock()
        self._threads = 0

    def submit(self, work: Callable[[], Any], name: str) -> asyncio.Future[Any]:
        """Run it on a thread. Cancelling the future abandons the thread that runs it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._busy.add(future)
        future.add_done_callback(self._released)
        if self._threads < min(self._size, len(self._busy)):
            self._grow()
        self._orders.put(_Order(work, name, future, loop))
        return future

    def close(self) -> None:
        """Let the idle threads end."""
        for _ in range(self._threads):
            self._orders.put(None)

    def _released(self, future: asyncio.Future[Any]) -> None:
        self._busy.discard(future)
        with self._lock:
            name = self._running.pop(future, None)
        if name is not None:
            log.error("%s does not stop; its thread is abandoned, and replaced", name)
            self._threads -= 1
            self._grow()

    def _grow(self) -> None:
        self._threads += 1
        threading.Thread(target=self._serve, name="duly-handler", daemon=True).start()

    def _serve(self) -> None:
        while self._serve_next():
            pass

    def _serve_next(self) -> bool:
        order = self._orders.get()
        if order is None:
            return False
        with self._lock:
            if order.future.cancelled():
                return True
            self._running[order.future] = order.name
        value, error = _outcome(order.work)
        with self._lock:
            ours = self._running.pop(order.future, None) is not None
        if ours:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                order.loop.call_soon_threadsafe(_tell, order.future, value, error)
        # The traceback of an error knows this frame: what the frame knows would live as long as the error.
        del order, value, error
        return ours


def _outcome(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return work(), None
    except BaseException as error:  # also SystemExit: it ends the handler, not the thread
        return None, error


def _tell(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration | GeneratorExit):
        # To a coroutine these two mean something else.
        future.set_exception(RuntimeError(str(error)))
    else:
        future.set_exception(error)
