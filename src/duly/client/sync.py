"""The same from code that is not async: one event loop in a thread of its own runs it."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from datetime import timedelta
from typing import Any, Generic, TypeVar

from duly.client.handle import Handle, Partial
from duly.model.errors import ConfigurationError
from duly.model.job import JobEvent, JobSnapshot
from duly.model.states import Status
from duly.store.artifacts import Artifact

R = TypeVar("R")
T = TypeVar("T")


class Portal:
    """A way into an event loop; made when first used, and anew in a forked process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.current_thread()
        self._pid = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine over there and wait for it here."""
        loop = self._running_loop()
        if threading.current_thread() is self._thread:
            work.close()
            raise ConfigurationError(
                "called on the thread that would answer", fix="await the async method instead"
            )
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            # A fork has no threads but the one that forked: the loop it inherited stands still.
            if self._loop is None or self._pid != os.getpid():
                self._loop, self._pid = asyncio.new_event_loop(), os.getpid()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="duly-portal", daemon=True
                )
                self._thread.start()
                # A script may just end.
                atexit.register(self.stop)
            return self._loop

    def stop(self) -> None:
        """Stop the loop; the next use makes a new one."""
        with self._lock:
            if self._loop is not None and self._pid == os.getpid():
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
            self._loop = None
            atexit.unregister(self.stop)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.run_until_complete(_leave())
    loop.close()


async def _leave() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


class SyncHandle(Generic[R]):
    """A `Handle` for code that is not async."""

    def __init__(self, handle: Handle[R], portal: Portal) -> None:
        self._handle = handle
        self._portal = portal
        self.job_id = handle.job_id
        self.org_id = handle.org_id
        self.created = handle.created

    def __repr__(self) -> str:
        return f"<SyncHandle {self.job_id}>"

    def status(self) -> JobSnapshot:
        """The job as it is now; an unknown id raises."""
        return self._portal.run(self._handle.status())

    def wait(self, timeout: timedelta | float | None = None) -> JobSnapshot:
        """The job when it has ended, however it ended."""
        return self._portal.run(self._handle.wait(timeout))

    def events(self, after: int = 0) -> Iterator[JobEvent]:
        """Every event once, in order, until the job has ended."""
        stream = self._handle.events(after)
        while (event := self._portal.run(_next(stream))) is not None:
            yield event

    def result(self, timeout: timedelta | float | None = None) -> R:
        """Wait for the end and take the result; a failed or canceled job raises."""
        return self._portal.run(self._handle.result(timeout))

    def partials(self) -> list[Partial]:
        """The partial results so far, oldest first."""
        return self._portal.run(self._handle.partials())

    def artifacts(self) -> list[Artifact]:
        """The files the job has left, by name."""
        return self._portal.run(self._handle.artifacts())

    def read(self, artifact: Artifact | str) -> bytes:
        """The content of one of its files, verified."""
        return self._portal.run(self._handle.read(artifact))

    def cancel(self, reason: str) -> Status:
        """Ask for the end; see `Handle.cancel`."""
        return self._portal.run(self._handle.cancel(reason))


async def _next(stream: AsyncIterator[JobEvent]) -> JobEvent | None:
    return await anext(stream, None)
