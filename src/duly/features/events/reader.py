"""Readers of events: those of a job and the feed of an org, as pages or as a stream that can be resumed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from starlette.responses import Response

from duly.core.errors import DulyError
from duly.core.job import JobEvent, JobSnapshot
from duly.core.states import TERMINAL_EVENT
from duly.features.events.models import FeedPage
from duly.features.jobs.status_watcher import EventHead
from duly.http import sse
from duly.http.requester import Requester
from duly.http.service import Service
from duly.jobs import store

_TERMINAL_EVENTS = frozenset(TERMINAL_EVENT.values())
_FIRST_PAUSE, _LAST_PAUSE = 0.05, 1.0
FEED_PAGE_SIZE = 100


class SerializableEvent(Protocol):
    """An event as a route returns it."""

    event_type: str

    def model_dump_json(self) -> str:
        """Return the event as JSON."""
        ...


class JobEventReader:
    """A reader of the events of a job after a number."""

    def __init__(
        self,
        service: Service,
        requester: Requester,
        job: JobSnapshot,
        after: int,
        to_response: Callable[[JobEvent], SerializableEvent],
    ) -> None:
        self.after = after
        self._service = service
        self._requester = requester
        self._job = job
        self._to_response = to_response

    async def next(self) -> list[JobEvent]:
        """Return the next events, up to a page."""
        org_id, job_id = self._job.org_id, self._job.job_id
        async with self._service.app.tenant_session(org_id) as conn:
            events = await store.read_events_after(conn, org_id, job_id, self.after)
        if events:
            self.after = events[-1].event_seq
        return events

    async def stream(self) -> Response:
        """Stream the events until the job has ended. Raise if the org has too many streams open."""
        return await sse.stream_response(self._chunks())

    async def _chunks(self) -> AsyncIterator[str]:
        # An error ends the stream; the client reconnects, to any process, and resumes.
        with self._service.stream_of(self._job.org_id), suppress(DulyError):
            yield sse.PREAMBLE
            ended = False
            while True:
                events = await self.next()
                for event in events:
                    body = self._to_response(event)
                    yield sse.sse_event(event.event_seq, body.event_type, body.model_dump_json())
                if any(event.event_type in _TERMINAL_EVENTS for event in events) or (ended and not events):
                    return
                if not events:
                    head = await self._wait_for_head()
                    # Events have a shorter retention than jobs: those of an ended job may be gone.
                    ended = head is not None and head.status.terminal
                    if head is None:
                        yield sse.HEARTBEAT
                await self._service.check_still_visible(self._requester, self._job)

    async def _wait_for_head(self) -> EventHead | None:
        """Return once there are events or the job has ended; None when a heartbeat is due."""
        try:
            async with asyncio.timeout(self._service.options.stream_heartbeat.total_seconds()):
                job = self._job
                return await self._service.status_watcher.wait_for_event(job.org_id, job.job_id, self.after)
        except TimeoutError:
            return None


class FeedReader:
    """A reader of the feed of an org after a cursor."""

    def __init__(self, service: Service, requester: Requester, after: str | None) -> None:
        self._service = service
        self._requester = requester
        self._after = after

    async def next(self, limit: int, wait: float) -> FeedPage:
        """Return the next page with events, or the last one that was read when the wait is over."""
        until, pause = time.monotonic() + wait, _FIRST_PAUSE
        while True:
            # Before every read: the credential or a permission may have been revoked.
            await self._requester.reauthenticate()
            await self._service.check_everything(self._requester)
            page = await self._visible(
                await self._service.feed.read(self._requester.org_id, self._after, limit)
            )
            self._after = page.after
            left = until - time.monotonic()
            if page.events or left <= 0:
                return page
            if not page.more:
                if await self._sleep(min(pause, left)):
                    return page
                pause = min(pause * 2, _LAST_PAUSE)

    async def stream(self, to_response: Callable[[JobEvent], SerializableEvent]) -> Response:
        """Stream the feed until the client leaves, or may no longer read it."""
        return await sse.stream_response(self._chunks(to_response))

    async def _chunks(self, to_response: Callable[[JobEvent], SerializableEvent]) -> AsyncIterator[str]:
        heartbeat = self._service.options.stream_heartbeat.total_seconds()
        with self._service.stream_of(self._requester.org_id):
            page = await self.next(FEED_PAGE_SIZE, 0)
            yield sse.PREAMBLE
            try:
                while True:
                    for event in page.events:
                        yield sse.sse_event(
                            event.cursor, event.event_type, to_response(event).model_dump_json()
                        )
                    if not page.events:
                        # With the cursor: the client need not scan the same empty part again.
                        yield f": still here\nid: {page.after}\n\n"
                    if self._service.closing.is_set():
                        return
                    page = await self.next(FEED_PAGE_SIZE, heartbeat)
            except DulyError:
                return  # the client reconnects, and gets the error then

    async def _visible(self, page: FeedPage) -> FeedPage:
        """Drop the events of private subjects: a requester who sees every subject does not see these."""
        visible = await self._service.visible_subjects(
            self._requester, [event.subject_id for event in page.events]
        )
        return replace(page, events=tuple(event for event in page.events if event.subject_id in visible))

    async def _sleep(self, seconds: float) -> bool:
        """Pause; return whether the service is closing."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._service.closing.wait(), seconds)
        return self._service.closing.is_set()
