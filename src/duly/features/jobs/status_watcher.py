"""Wait for events of jobs: one poll of the database serves all waiters of the process."""

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
_POLL_INTERVAL = 0.05
_ERROR_PAUSE = 1.0
_MAX_BATCH_JOBS = 500


class EventHead(NamedTuple):
    """The number of the last event of a job, and its status."""

    event_seq: int
    status: Status


class _Waiter(NamedTuple):
    after_seq: int
    result: asyncio.Future[EventHead]


class StatusWatcher:
    """Polls the jobs that callers wait for, and nothing while no caller waits.

    A caller that arrives during a poll is served by the next one at the latest.
    """

    def __init__(
        self, app: App, *, poll_interval: float = _POLL_INTERVAL, error_pause: float = _ERROR_PAUSE
    ) -> None:
        self._app = app
        self._poll_interval = poll_interval
        self._error_pause = error_pause
        self._waiters: dict[_Key, list[_Waiter]] = {}
        self._poller: asyncio.Task[None] | None = None
        self._closed = False

    async def wait_for_event(self, org_id: UUID, job_id: UUID, after_seq: int) -> EventHead:
        """Wait until the job has an event after `after_seq`, or has ended. An unknown job has no events."""
        if self._closed:
            raise _closed_error()
        result: asyncio.Future[EventHead] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault((org_id, job_id), []).append(_Waiter(after_seq, result))
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(
                self._poll_while_needed(), name="duly-status-watcher", context=Context()
            )
        return await result

    async def close(self) -> None:
        """Stop polling; remaining waiters get an error."""
        self._closed = True
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
        for waiters in self._waiters.values():
            for waiter in waiters:
                if not waiter.result.done():
                    waiter.result.set_exception(_closed_error())
        self._waiters.clear()

    async def _poll_while_needed(self) -> None:
        """Poll until no caller waits. No error may end this earlier: callers would wait forever."""
        while self._waiters:
            pause = self._poll_interval
            try:
                await self._poll()
            except (psycopg.Error, StoreError) as error:
                log.warning("could not poll the status of jobs, retrying: %s", error)
                pause = self._error_pause
            except Exception:
                log.exception("polling the status of jobs crashed, retrying")
                pause = self._error_pause
            await asyncio.sleep(pause)
            self._remove_done()

    async def _poll(self) -> None:
        keys = list(self._waiters)
        async with (await self._app.resources()).database.engine() as conn:
            for start in range(0, len(keys), _MAX_BATCH_JOBS):
                batch = keys[start : start + _MAX_BATCH_JOBS]
                heads = await job_store.read_event_heads(conn, batch)
                for key, head in zip(batch, heads, strict=True):
                    self._notify(key, EventHead(*head))

    def _notify(self, key: _Key, head: EventHead) -> None:
        for waiter in self._waiters[key]:
            if (head.event_seq > waiter.after_seq or head.status.terminal) and not waiter.result.done():
                waiter.result.set_result(head)

    def _remove_done(self) -> None:
        """Remove waiters that have their result, or were canceled."""
        for key, waiters in list(self._waiters.items()):
            pending = [waiter for waiter in waiters if not waiter.result.done()]
            if pending:
                self._waiters[key] = pending
            else:
                del self._waiters[key]


def _closed_error() -> StoreUnavailable:
    return StoreUnavailable("the status watcher is closed", fix="retry, or use another process")
