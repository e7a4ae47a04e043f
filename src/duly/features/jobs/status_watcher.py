"""Watching jobs: whoever waits for news of a job is told by one look for all, not by one of their own."""

from __future__ import annotations

import asyncio
import logging
from contextvars import Context
from typing import NamedTuple
from uuid import UUID

import psycopg

from duly.core.errors import StoreError, StoreUnavailable
from duly.core.states import Status
from duly.jobs import store as job_store
from duly.jobs.application import App

log = logging.getLogger("duly.jobs")
_Key = tuple[UUID, UUID]
_PACE = 0.05
_AFTER_TROUBLE = 1.0
_BATCH = 500


class Head(NamedTuple):
    """How far a job is."""

    event_seq: int
    status: Status


class _Waiter(NamedTuple):
    seen: int
    told: asyncio.Future[Head]


class Watch:
    """One look in every twentieth of a second at all the jobs that somebody waits for; none if nobody does.

    Whoever comes while a look is under way is looked for by the next one at the latest.
    """

    def __init__(self, app: App, *, pace: float = _PACE, after_trouble: float = _AFTER_TROUBLE) -> None:
        self._app = app
        self._pace = pace
        self._after_trouble = after_trouble
        self._waiting: dict[_Key, list[_Waiter]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    async def news(self, org_id: UUID, job_id: UUID, seen: int) -> Head:
        """Return when the job has an event after `seen`, or has ended. Of an unknown one there is no news."""
        if self._closed:
            raise _stopped()
        told: asyncio.Future[Head] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault((org_id, job_id), []).append(_Waiter(seen, told))
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_on(), name="duly-watch", context=Context())
        return await told

    async def close(self) -> None:
        """Look no more; whoever still waits is told so by an error."""
        self._closed = True
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        for waiters in self._waiting.values():
            for waiter in waiters:
                if not waiter.told.done():
                    waiter.told.set_exception(_stopped())
        self._waiting.clear()

    async def _look_on(self) -> None:
        """Until nobody waits. No trouble may end this earlier: they would wait for ever."""
        while self._waiting:
            pause = self._pace
            try:
                await self._look()
            except (psycopg.Error, StoreError) as error:
                log.warning("cannot look at watched jobs, trying again: %s", error)
                pause = self._after_trouble
            except Exception:
                log.exception("looking at watched jobs failed, trying again")
                pause = self._after_trouble
            await asyncio.sleep(pause)
            self._forget()

    async def _look(self) -> None:
        keys = list(self._waiting)
        async with (await self._app.resources()).database.engine() as conn:
            for start in range(0, len(keys), _BATCH):
                some = keys[start : start + _BATCH]
                for key, head in zip(some, await job_store.read_event_heads(conn, some), strict=True):
                    self._tell(key, Head(*head))

    def _tell(self, key: _Key, head: Head) -> None:
        for waiter in self._waiting[key]:
            if (head.event_seq > waiter.seen or head.status.terminal) and not waiter.told.done():
                waiter.told.set_result(head)

    def _forget(self) -> None:
        """Those who were told, or have left."""
        for key, waiters in list(self._waiting.items()):
            left = [waiter for waiter in waiters if not waiter.told.done()]
            if left:
                self._waiting[key] = left
            else:
                del self._waiting[key]


def _stopped() -> StoreUnavailable:
    return StoreUnavailable("nobody looks at the jobs any more", fix="ask again, or another process")
