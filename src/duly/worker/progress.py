"""Progress, coalesced: however often handlers call, one statement now and then for all jobs of the worker."""

from __future__ import annotations

import asyncio
import logging

import psycopg

from duly.model.errors import StoreError
from duly.store import work
from duly.store.session import Database, retrying
from duly.store.work import Key, Step

log = logging.getLogger("duly.worker")
_PACE = 0.25


class ProgressKeeper:
    """Keeps the latest step of each run until it is written. Each stored change leaves its event."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pending: dict[Key, Step] = {}
        self._news = asyncio.Event()
        self._writing = asyncio.Lock()

    def note(self, step: Step) -> None:
        """The latest word of this run."""
        self._pending[step.job.key] = step
        self._news.set()

    async def keep(self, step: Step) -> bool:
        """Write this one now; whether the job is still ours."""
        self._pending.pop(step.job.key, None)
        return step.job.key in await self._write([step])

    async def flush(self, key: Key) -> None:
        """Write what is pending of one run, before it ends."""
        # What is just being written must be there first.
        async with self._writing:
            step = self._pending.pop(key, None)
            if step is not None:
                await self._write([step])

    def drop(self, key: Key) -> None:
        """It does not matter any more."""
        if self._pending:
            self._pending.pop(key, None)

    async def run(self) -> None:
        """Write again and again, until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            async with self._writing:
                await self._write_pending()
            await asyncio.sleep(_PACE)

    async def _write_pending(self) -> None:
        steps, self._pending = self._pending, {}
        try:
            if steps:
                await self._write(list(steps.values()))
        except (psycopg.OperationalError, StoreError) as error:
            log.warning("progress is not kept yet, trying again: %s", error)
            self._pending = steps | self._pending
            self._news.set()
        except Exception:
            log.exception("progress was not kept")

    async def _write(self, steps: list[Step]) -> set[Key]:
        async def once() -> set[Key]:
            async with self._database.engine_session() as conn:
                return await work.keep_progress(conn, steps)

        return await retrying(once)
