"""The resources of an application, opened once per event loop: database, blobs, enqueue batcher."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duly.blobs import BlobStore
from duly.db.database import Database
from duly.jobs.enqueue_batcher import EnqueueBatcher, Waker

if TYPE_CHECKING:
    from duly.observability.traces import Traces


@dataclass(frozen=True, slots=True)
class Resources:
    """The open resources of one event loop."""

    database: Database
    blobs: BlobStore
    payload_inline_max: int
    waker: Waker
    enqueue_batcher: EnqueueBatcher
    traces: Traces | None = None
    """The tracer of OpenTelemetry spans, if tracing is on."""


class LoopResources:
    """The resources of each event loop, because a pool belongs to the loop that opened it."""

    def __init__(self, opener: Callable[[], Awaitable[Resources]]) -> None:
        self._opener = opener
        self._opening: dict[asyncio.AbstractEventLoop, asyncio.Future[Resources]] = {}

    async def get(self) -> Resources:
        """Return the resources of the running loop; the first caller opens them."""
        loop = asyncio.get_running_loop()
        opening = self._opening.get(loop)
        if opening is not None and _is_open(opening):
            return opening.result()
        if opening is None or opening.done():
            self._drop_closed_loops()
            opening = self._opening[loop] = asyncio.ensure_future(self._opener())
        # The cancellation of one caller must not cancel the others.
        return await asyncio.shield(opening)

    async def close(self) -> None:
        """Close the resources of the running loop."""
        opening = self._opening.pop(asyncio.get_running_loop(), None)
        if opening is None:
            return
        await asyncio.wait([opening])
        if _is_open(opening):
            resources = opening.result()
            await resources.enqueue_batcher.close()
            await resources.waker.close()
            await resources.database.close()
            if resources.traces is not None:
                await asyncio.to_thread(resources.traces.flush)

    def _drop_closed_loops(self) -> None:
        """Drop resources whose loop was closed before them, as after many calls of `asyncio.run`."""
        # A copy, because another thread may open the resources of its own loop.
        for loop in [loop for loop in list(self._opening) if loop.is_closed()]:
            opening = self._opening.pop(loop, None)
            if opening is not None and _is_open(opening):
                opening.result().database.drop()


def _is_open(opening: asyncio.Future[Resources]) -> bool:
    return opening.done() and not opening.cancelled() and opening.exception() is None
