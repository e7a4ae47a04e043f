"""What an application stands on: the database and the blobs, opened once per event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duly.blobs import BlobStore
from duly.client.outbox import Outbox
from duly.client.wake import Waker
from duly.store.session import Database

if TYPE_CHECKING:
    from duly.observe.traces import Traces


@dataclass(frozen=True, slots=True)
class Ground:
    """An open database, a blob store, and the values that enqueueing needs."""

    database: Database
    blobs: BlobStore
    payload_inline_max: int
    waker: Waker
    outbox: Outbox
    traces: Traces | None = None
    """Where spans are made, if they are wanted."""


class Grounds:
    """One ground per event loop, because a pool belongs to the loop that opened it."""

    def __init__(self, opener: Callable[[], Awaitable[Ground]]) -> None:
        self._opener = opener
        self._opening: dict[asyncio.AbstractEventLoop, asyncio.Future[Ground]] = {}

    async def get(self) -> Ground:
        """The ground of the running loop; the first to ask opens it for all."""
        self._leave_closed_loops()
        loop = asyncio.get_running_loop()
        opening = self._opening.get(loop)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            opening = self._opening[loop] = asyncio.ensure_future(self._opener())
        # One caller's cancellation must not take the ground from the others.
        return await asyncio.shield(opening)

    async def close(self) -> None:
        """Give back what the running loop opened."""
        opening = self._opening.pop(asyncio.get_running_loop(), None)
        if opening is None:
            return
        await asyncio.wait([opening])
        if not opening.cancelled() and opening.exception() is None:
            ground = opening.result()
            await ground.outbox.close()
            await ground.waker.close()
            await ground.database.close()
            if ground.traces is not None:
                await asyncio.to_thread(ground.traces.flush)

    def _leave_closed_loops(self) -> None:
        """A script may call `asyncio.run` many times: what each loop left open can only be dropped."""
        # A copy, because another thread may be opening the ground of its own loop.
        for loop in [loop for loop in list(self._opening) if loop.is_closed()]:
            opening = self._opening.pop(loop, None)
            if (
                opening is not None
                and opening.done()
                and not opening.cancelled()
                and opening.exception() is None
            ):
                opening.result().database.drop()
