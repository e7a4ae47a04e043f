"""What a worker does of each queue, minute by minute: counted in memory, written beside the work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from uuid import uuid4

import psycopg

from duly.model.decide import Transition
from duly.model.errors import StoreError
from duly.model.spread import count_into
from duly.model.states import Status
from duly.store import minutes
from duly.store.minutes import Done
from duly.store.session import Database

log = logging.getLogger("duly.worker")
_PACE = 5.0
_KEPT = 60
"""So many minutes are kept to be written when the database comes back."""
_Cell = tuple[int, str]


class Minutes:
    """Counts into the present minute of a queue. It writes sums, so that writing twice does no harm."""

    def __init__(self, minute: Callable[[], int], database: Database | None = None) -> None:
        self._minute = minute
        self._database = database
        self._recorder = uuid4()
        self._cells: dict[_Cell, Done] = {}
        self._changed: set[_Cell] = set()

    def started(self, queue: str, waits: Collection[float]) -> None:
        """So many were claimed, after having waited so long each."""
        cell = self._cell(queue)
        cell.started += len(waits)
        count_into(cell.waits, waits)

    def completed(self, queue: str, n: int, seconds: Collection[float]) -> None:
        """So many were completed; their handlers ran so long."""
        cell = self._cell(queue)
        cell.completed += n
        self._ran(cell, seconds)

    def ended(self, queue: str, to: Transition, seconds: float | None) -> None:
        """An attempt ended in any other way."""
        cell = self._cell(queue)
        if to.status is Status.COMPLETED:
            cell.completed += 1
        elif to.status is Status.FAILED:
            cell.failed += 1
        elif to.status is Status.CANCELED:
            cell.canceled += 1
        elif not to.gives_back:
            cell.retried += 1
        self._ran(cell, () if seconds is None else (seconds,))

    def _ran(self, cell: Done, seconds: Collection[float]) -> None:
        cell.run_seconds += sum(seconds)
        count_into(cell.runs, seconds)

    def _cell(self, queue: str) -> Done:
        key = self._minute(), queue
        self._changed.add(key)
        found = self._cells.get(key)
        if found is None:
            found = self._cells[key] = Done()
        return found

    async def run(self) -> None:
        """Write again and again, until cancelled."""
        while True:
            await asyncio.sleep(_PACE)
            await self.write()

    async def write(self) -> None:
        """Write what has changed. Figures are worth no trouble: what cannot be written waits."""
        self._forget()
        if self._database is None or not self._changed:
            return
        changed, self._changed = self._changed, set()
        try:
            async with self._database.engine_statement() as conn:
                await minutes.write(
                    conn, self._recorder, [(*key, self._cells[key]) for key in sorted(changed)]
                )
        except (psycopg.Error, StoreError) as error:
            self._changed |= changed
            log.info("the figures of the last minutes are not written yet: %s", error)
        except BaseException:
            self._changed |= changed
            raise

    def _forget(self) -> None:
        """The minutes that are over and written; after a while also those that could not be."""
        now = self._minute()
        for key in [key for key in self._cells if key[0] < now - (_KEPT if key in self._changed else 1)]:
            del self._cells[key]
            self._changed.discard(key)
