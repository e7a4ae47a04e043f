"""Lines of `ctx.log`, coalesced: one statement now and then for all jobs of the worker. Nobody waits."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import psycopg

from duly.model.errors import StoreError
from duly.store import job_logs
from duly.store.job_logs import Line
from duly.store.session import Database, retrying

log = logging.getLogger("duly.worker")
_PACE, _GATHER, _AGAIN = 0.5, 0.05, 1.0
_BATCH, _MOST = 500, 5_000
_PATIENCE = 2.0


class LineKeeper:
    """Holds lines until they are written; more than so many are dropped, and that is said."""

    def __init__(self, database: Database, level: int) -> None:
        self.level = level
        self._database = database
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._pending: list[Line] = []
        self._dropped = 0
        self._told = False
        self._news, self._hurry = asyncio.Event(), asyncio.Event()

    def put(self, lines: Sequence[Line], *, last: bool = False) -> None:
        """Have them kept soon; the last ones of an attempt at once. Any thread may call it."""
        with self._lock:
            self._add(lines)
            tell, self._told = last or not self._told, True
        if tell:
            with suppress(RuntimeError):  # the loop is closed: the worker is gone
                self._loop.call_soon_threadsafe(self._tell, last)

    async def run(self) -> None:
        """Write again and again, until cancelled."""
        while True:
            await self._news.wait()
            if not await self._write_pending():
                await asyncio.sleep(_AGAIN)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(_PACE):
                    await self._hurry.wait()
            # Where many end, many are written together.
            await asyncio.sleep(_GATHER)

    async def close(self) -> None:
        """Write what is left, if that is quickly done."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._write_pending()

    def _tell(self, last: bool) -> None:
        self._news.set()
        if last:
            self._hurry.set()

    async def _write_pending(self) -> bool:
        """Whether nothing is left."""
        while lines := self._take():
            try:
                await retrying(partial(self._write, lines))
            except (psycopg.OperationalError, StoreError) as error:
                log.warning("lines of jobs are not kept yet, trying again: %s", error)
                self._put_back(lines)
                return False
            except Exception:
                log.exception("%d lines of jobs are lost", len(lines))
            except BaseException:
                self._put_back(lines)
                raise
        return True

    async def _write(self, lines: Sequence[Line]) -> None:
        async with self._database.engine_session() as conn:
            await job_logs.keep(conn, lines)

    def _take(self) -> list[Line]:
        self._news.clear()
        self._hurry.clear()
        with self._lock:
            lines, self._pending = self._pending[:_BATCH], self._pending[_BATCH:]
            dropped, self._dropped, self._told = self._dropped, 0, False
        if dropped:
            log.warning("%d lines of jobs are dropped: they could not be written in time", dropped)
        return lines

    def _put_back(self, lines: Sequence[Line]) -> None:
        with self._lock:
            later, self._pending = self._pending, []
            self._add([*lines, *later])
        self._news.set()

    def _add(self, lines: Sequence[Line]) -> None:
        kept = lines[: max(_MOST - len(self._pending), 0)]
        self._pending += kept
        self._dropped += len(lines) - len(kept)
