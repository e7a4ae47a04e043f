"""Somebody who reads the events of a job: a page, or a stream that goes on where they left it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Protocol

from starlette.responses import Response

from duly.control.watch import Head
from duly.http import streams
from duly.http.caller import Caller
from duly.http.service import Service
from duly.model.errors import ContractError, DulyError
from duly.model.events import TERMINAL_EVENT
from duly.model.job import JobEvent, JobSnapshot
from duly.store import history

_LAST = frozenset(TERMINAL_EVENT.values())


class Told(Protocol):
    """An event in the words of a route."""

    event_type: str

    def model_dump_json(self) -> str:
        """As JSON."""
        ...


class Reader:
    """Has read the events of a job up to a number."""

    def __init__(
        self, service: Service, who: Caller, job: JobSnapshot, after: int, words: Callable[[JobEvent], Told]
    ) -> None:
        self.after = after
        self._service = service
        self._who = who
        self._job = job
        self._words = words

    async def next(self) -> list[JobEvent]:
        """The events that follow, a page at most."""
        org_id, job_id = self._job.org_id, self._job.job_id
        async with self._service.app.tenant_session(org_id) as conn:
            found = await history.events_after(conn, org_id, job_id, self.after)
        if found:
            self.after = found[-1].event_seq
        return found

    async def stream(self) -> Response:
        """All there is, and all that comes. Raises if the org has too many streams open."""
        return await streams.streaming(self._told())

    async def _told(self) -> AsyncIterator[str]:
        # A stream that cannot go on ends; its reader comes back, here or elsewhere, and goes on.
        with self._service.stream_of(self._job.org_id), suppress(DulyError):
            yield streams.OPENING
            over = False
            while True:
                found = await self.next()
                for event in found:
                    said = self._words(event)
                    yield streams.line(event.event_seq, said.event_type, said.model_dump_json())
                if any(event.event_type in _LAST for event in found) or (over and not found):
                    return
                if not found:
                    head = await self._head()
                    # Events are kept for a shorter time than jobs: what has ended may have none any more.
                    over = head is not None and head.status.terminal
                    if head is None:
                        yield streams.SIGN_OF_LIFE
                await self._service.check_still(self._who, self._job)

    async def _head(self) -> Head | None:
        """How far it is when there is more, or when it has ended; None if it is time for a sign of life."""
        try:
            async with asyncio.timeout(self._service.options.stream_heartbeat.total_seconds()):
                return await self._service.watch.news(self._job.org_id, self._job.job_id, self.after)
        except TimeoutError:
            return None


def last_known(after: int, last_event_id: str | None) -> int:
    """Where to go on: what the query says, or what a browser does."""
    if not last_event_id:
        return after
    if not (last_event_id.isascii() and last_event_id.isdigit()) or len(last_event_id) > 9:
        raise ContractError("no number", field="Last-Event-ID", fix="send the id of the last event")
    return max(after, int(last_event_id))
