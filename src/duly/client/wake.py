"""Telling the workers that there is something to do: after the commit, and seldom."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import Context

import psycopg

from duly.model.errors import StoreError
from duly.store.session import Database

_PAUSE = 0.003


class Waker:
    """Many enqueues, one notification: it takes a lock of the whole server, so it is sent on its own.

    A hint only. What it fails to say, the workers find by polling.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._again = False
        self._task: asyncio.Task[None] | None = None
        self._quiet_until = 0.0

    def may_be_told(self) -> bool:
        """Whether the caller may tell it by its own commit: nobody did lately. If so, others leave it be."""
        now = asyncio.get_running_loop().time()
        if now < self._quiet_until or (self._task is not None and not self._task.done()):
            return False
        self._quiet_until = now + _PAUSE
        return True

    def wake(self) -> None:
        """Have it said soon, once for all who ask meanwhile."""
        if self._task is not None and not self._task.done():
            self._again = True
            return
        self._task = asyncio.get_running_loop().create_task(
            self._tell(), name="duly-waker", context=Context()
        )

    async def close(self) -> None:
        """Say what is still to be said."""
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await self._task

    async def _tell(self) -> None:
        while True:
            self._again = False
            with suppress(psycopg.Error, StoreError):
                await self._database.notify("duly_ready")
            await asyncio.sleep(_PAUSE)
            if not self._again:
                return
