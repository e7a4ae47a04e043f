"""Write progress in batches: however often handlers report it, one statement now and then for all jobs."""

from __future__ import annotations

import asyncio
import logging

import psycopg

from duly.core.errors import StoreError
from duly.db.database import Database, retry_transaction
from duly.worker import settle_store
from duly.worker.claim import ClaimedJob
from duly.worker.settle_store import Key, ProgressUpdate

log = logging.getLogger("duly.worker")
_WRITE_INTERVAL = 0.25


class ProgressWriter:
    """Keeps the latest update of each run until it is written. Each stored change leaves an event."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pending: dict[Key, ProgressUpdate] = {}
        self._arrived = asyncio.Event()
        self._writing = asyncio.Lock()

    def put(self, update: ProgressUpdate) -> None:
        """Have the update written soon, unless a later one replaces it."""
        self._pending[update.job.key] = update
        self._arrived.set()

    async def write_now(self, update: ProgressUpdate) -> bool:
        """Write the update now; return whether the attempt still holds its lease."""
        self._pending.pop(update.job.key, None)
        return update.job.key in await self._write([update])

    async def flush(self, key: Key) -> None:
        """Write the pending update of one run, before the run ends."""
        # A write under way must be finished first.
        async with self._writing:
            update = self._pending.pop(key, None)
            if update is not None:
                await self._write([update])

    def drop(self, job: ClaimedJob) -> None:
        """Discard the pending update of one run."""
        if self._pending:
            self._pending.pop(job.key, None)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            async with self._writing:
                await self._write_pending()
            await asyncio.sleep(_WRITE_INTERVAL)

    async def _write_pending(self) -> None:
        updates, self._pending = self._pending, {}
        try:
            if updates:
                await self._write(list(updates.values()))
        except (psycopg.OperationalError, StoreError) as error:
            log.warning("could not write progress, retrying: %s", error)
            self._pending = updates | self._pending
            self._arrived.set()
        except Exception:
            log.exception("could not write progress")

    async def _write(self, updates: list[ProgressUpdate]) -> set[Key]:
        await settle_store.leave_plain_path(self._database, [update.job for update in updates])

        async def once() -> set[Key]:
            async with self._database.engine() as conn:
                return await settle_store.write_progress(conn, updates)

        return await retry_transaction(once)
