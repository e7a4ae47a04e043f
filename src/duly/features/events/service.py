"""The feed of an org: every event of its jobs, in the order of commits, at least once and never skipped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from duly.core.errors import ContractError, CursorExpired
from duly.features.arguments import check_org_exists, org_uuid
from duly.features.events import store as feed
from duly.features.events.store import BEGINNING, FeedEvent, Look, Place
from duly.features.pagination import decode_cursor, encode_cursor, page_size
from duly.jobs.application import App

__all__ = ["Feed", "FeedEvent", "FeedPage"]

_LOOK = 5_000
"""Events of all orgs that one page looks at: three milliseconds, whether the org has any of them or not."""
_FIRST_PAUSE = timedelta(milliseconds=50)


@dataclass(frozen=True, slots=True)
class FeedPage:
    """Some events; `after` asks for those that follow, now or later. A feed has no end.

    So many events of all orgs are looked at and no more: a page may be short, even empty, although others
    follow. `more` says whether to ask at once.
    """

    events: tuple[FeedEvent, ...]
    after: str
    more: bool


class Feed:
    """The feeds of the orgs of an application."""

    def __init__(self, app: App, *, look: int = _LOOK) -> None:
        self._app = app
        self._look = look

    async def read(self, org_id: UUID | str, after: str | None = None, limit: int = 100) -> FeedPage:
        """The events after a cursor, of a page or of an event; without one, from the oldest that is kept.

        A cursor raises `CursorExpired` if events after it were dropped by retention. An unknown org raises.
        """
        whose, size = org_uuid(org_id), page_size(limit)
        start = decode_cursor(after, _read_place) or BEGINNING
        found = await self._found(whose, start, size)
        async with self._app.tenant_session(whose) as conn:
            if not found.places:
                await check_org_exists(conn, whose)
            cursors = [encode_cursor(*at) for at in found.places]
            events = await feed.read(conn, whose, found.places, cursors) if cursors else []
        if len(events) < len(found.places):
            raise _expired()  # dropped between the two looks
        return FeedPage(tuple(events), encode_cursor(*found.end), found.more)

    async def follow(
        self, org_id: UUID | str, after: str | None = None, *, every: timedelta = timedelta(seconds=1)
    ) -> AsyncIterator[FeedEvent]:
        """Every event after a cursor, then those to come, for ever; it looks at least `every` so often.

        Keep the `cursor` of the last event you have dealt with, and follow from there after a break.
        """
        pause = min(_FIRST_PAUSE, every)
        while True:
            page = await self.read(org_id, after)
            for event in page.events:
                yield event
            after = page.after
            pause = min(_FIRST_PAUSE if page.events else pause * 2, every)
            _check_wanted()
            if not page.more:
                await asyncio.sleep(pause.total_seconds())

    async def tip(self, org_id: UUID | str) -> str:
        """The cursor of now: what commits from here on follows it, and perhaps a little of what just did."""
        whose = org_uuid(org_id)
        async with self._app.tenant_session(whose) as conn:
            await check_org_exists(conn, whose)
        async with (await self._app.resources()).database.engine() as conn:
            return encode_cursor(*await feed.tip(conn))

    async def _found(self, org_id: UUID, start: Place, size: int) -> Look:
        """Where the events lie is found by the engine; what they say is read by the org."""
        async with (await self._app.resources()).database.engine() as conn:
            found = await feed.look(conn, org_id, start, limit=size, most=self._look)
        if found.unknown:
            raise ContractError(
                "no transaction of this server has come that far",
                field="after",
                fix="begin without a cursor",
            )
        if found.lost:
            raise _expired()
        return found


def _check_wanted() -> None:
    """Python 3.11 may lose a cancel that comes together with an answer of the database; the task knows."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _read_place(drops: str, xid: str, job_id: str, event_seq: str) -> Place:
    read = Place(int(drops), int(xid), UUID(job_id), int(event_seq))
    if not (0 <= read.drops < 2**63 and 0 <= read.xid < 2**63 and 0 <= read.event_seq < 2**31):
        raise ValueError("out of range")
    return read


def _expired() -> CursorExpired:
    return CursorExpired(
        "events after it were dropped by retention", field="after", fix="begin again without a cursor"
    )
