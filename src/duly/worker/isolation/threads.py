"""Threads for sync handlers. A thread that does not return is replaced, not waited for."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

log = logging.getLogger("duly.worker")


class _Call(NamedTuple):
    work: Callable[[], Any]
    name: str
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


class ThreadPool:
    """Daemon threads, started when needed: a stuck one never keeps the process from ending."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._busy: set[asyncio.Future[Any]] = set()
        self._running: dict[asyncio.Future[Any], str] = {}
        # A thread that finishes and a loop that abandons it must agree on which came first.
        self._lock = threading.Lock()
        self._threads = 0

    def submit(self, work: Callable[[], Any], name: str) -> asyncio.Future[Any]:
        """Run a function on a thread. Cancelling the future abandons the thread."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._busy.add(future)
        future.add_done_callback(self._released)
        if self._threads < min(self._size, len(self._busy)):
            self._grow()
        self._calls.put(_Call(work, name, future, loop))
        return future

    def close(self) -> None:
        """End the idle threads."""
        for _ in range(self._threads):
            self._calls.put(None)

    def _released(self, future: asyncio.Future[Any]) -> None:
        self._busy.discard(future)
        with self._lock:
            name = self._running.pop(future, None)
        if name is not None:
            log.error("%s did not stop; abandoned and replaced its thread", name)
            self._threads -= 1
            self._grow()

    def _grow(self) -> None:
        self._threads += 1
        threading.Thread(target=self._serve, name="duly-handler", daemon=True).start()

    def _serve(self) -> None:
        while self._serve_next():
            pass

    def _serve_next(self) -> bool:
        call = self._calls.get()
        if call is None:
            return False
        with self._lock:
            if call.future.cancelled():
                return True
            self._running[call.future] = call.name
        value, error = _outcome(call.work)
        with self._lock:
            ours = self._running.pop(call.future, None) is not None
        if ours:
            with suppress(RuntimeError):  # the loop is closed: no caller waits any more
                call.loop.call_soon_threadsafe(_resolve, call.future, value, error)
        # The traceback of an error refers to this frame: its locals would live as long as the error.
        del call, value, error
        return ours


def _outcome(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return work(), None
    except BaseException as error:  # also SystemExit: it ends the handler, not the thread
        return None, error


def _resolve(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration | GeneratorExit):
        # To a coroutine these two mean something else.
        future.set_exception(RuntimeError(str(error)))
    else:
        future.set_exception(error)
