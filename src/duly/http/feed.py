"""The feed of an org: every event of its jobs, as pages that can be waited for, or as a stream."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header
from pydantic import BaseModel, Field
from starlette.responses import Response

from duly.control.feed import FeedPage
from duly.http import streams
from duly.http.answers import as_json, preferred_wait
from duly.http.caller import Caller
from duly.http.params import After, Limit
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.shapes import EventShown
from duly.http.strict import StrictRoute
from duly.model.access import Scope
from duly.model.errors import DulyError
from duly.store.feed import FeedEvent

_FIRST_PAUSE, _LAST_PAUSE = 0.05, 1.0
_PAGE = 100


class FeedEventShown(EventShown):
    """An event with what identifies its job; `cursor` asks for what follows it."""

    job_type: str
    project_id: UUID | None
    request_id: str
    correlation_id: str
    trace_id: str | None
    cursor: str


class FeedShown(BaseModel):
    """Some events in the order of commits; `after` asks for those that follow, now or later."""

    events: list[FeedEventShown]
    after: str
    more: bool = Field(
        description="Whether to ask again at once: a page may be empty although others follow."
    )


def routes(service: Service) -> APIRouter:
    """One route, three ways to read."""
    api = APIRouter(prefix="/v1/feed", tags=["feed"], route_class=StrictRoute)
    reads = Annotated[Caller, service.allows(Scope.READ)]

    @api.get(
        "",
        response_model=FeedShown,
        responses={**documented(410), 200: streams.documented_as("Events in the order of commits.")},
    )
    async def feed(
        who: reads,
        limit: Limit = _PAGE,
        after: After = None,
        last_event_id: Annotated[
            str | None, Header(max_length=4000, description="The same as `after`, as browsers send it.")
        ] = None,
        accept: Annotated[str, Header(description=f"`{streams.MEDIA_TYPE}` for a stream.")] = "",
        prefer: Annotated[
            str | None, Header(description="`wait=N`: answer when there are events, or after N seconds.")
        ] = None,
    ) -> Response:
        """Every event of the org's jobs after a cursor; without one, from the oldest that is kept.

        Each comes at least once and none is skipped. As a stream if `text/event-stream` is accepted.
        """
        reader = _Reader(service, who, last_event_id or after)
        if streams.MEDIA_TYPE in accept:
            return await streams.streaming(_told(service, who, reader))
        wait = preferred_wait(prefer, service.options.wait_max)
        headers = {"preference-applied": f"wait={wait:g}"} if wait else None
        return as_json(_shown(await reader.next(limit, wait)), headers=headers)

    return api


class _Reader:
    """Somebody who has read the feed of an org up to a cursor."""

    def __init__(self, service: Service, who: Caller, after: str | None) -> None:
        self._service = service
        self._who = who
        self._after = after

    async def next(self, limit: int, wait: float) -> FeedPage:
        """The next page that has events; the last that was looked at when the time is over."""
        until, pause = time.monotonic() + wait, _FIRST_PAUSE
        while True:
            # Before every look: a key may be revoked, or its owner's rights.
            await self._who.again()
            await self._service.check_everything(self._who)
            page = await self._seen(await self._service.feed.read(self._who.org_id, self._after, limit))
            self._after = page.after
            left = until - time.monotonic()
            if page.events or left <= 0:
                return page
            if not page.more:
                if await self._rest(min(pause, left)):
                    return page
                pause = min(pause * 2, _LAST_PAUSE)

    async def _seen(self, page: FeedPage) -> FeedPage:
        """Without what is private to others: whoever may see everything does not see that."""
        open_to_them = await self._service.seen(self._who, [event.subject_id for event in page.events])
        return replace(page, events=tuple(one for one in page.events if one.subject_id in open_to_them))

    async def _rest(self, seconds: float) -> bool:
        """Pause; True if the service is about to close."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._service.closing.wait(), seconds)
        return self._service.closing.is_set()


async def _told(service: Service, who: Caller, reader: _Reader) -> AsyncIterator[str]:
    """All there is, and all that comes, until the reader leaves or is no longer believed."""
    heartbeat = service.options.stream_heartbeat.total_seconds()
    with service.stream_of(who.org_id):
        page = await reader.next(_PAGE, 0)
        yield streams.OPENING
        try:
            while True:
                for event in page.events:
                    shown = _event(event)
                    yield streams.line(shown.cursor, shown.event_type, shown.model_dump_json())
                if not page.events:
                    # Also where to go on: what was looked at in vain need not be looked at again.
                    yield f": still here\nid: {page.after}\n\n"
                if service.closing.is_set():
                    return
                page = await reader.next(_PAGE, heartbeat)
        except DulyError:
            return  # they come again, and are told then what is wrong


def _shown(page: FeedPage) -> FeedShown:
    return FeedShown.model_construct(
        events=[_event(event) for event in page.events], after=page.after, more=page.more
    )


def _event(event: FeedEvent) -> FeedEventShown:
    """What is read was checked when it was written; it is not checked again."""
    said = {name: value for name, value in event.__dict__.items() if name in FeedEventShown.model_fields}
    return FeedEventShown.model_construct(**said, payload=event.payload_json)
