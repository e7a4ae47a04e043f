"""The feed of an org: every event of its jobs, in commit order, at least once and never skipped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

from duly.core.errors import ContractError, CursorExpired
from duly.features.arguments import check_org_exists, org_uuid
from duly.features.events import store
from duly.features.events.models import FeedEvent, FeedPage
from duly.features.events.store import BEGINNING, FeedCursor, FeedScan
from duly.features.pagination import decode_cursor, encode_cursor, page_size
from duly.jobs.application import App

_MAX_SCANNED = 5_000
"""Events of all orgs that a page scans: three milliseconds, even if none of them belongs to the org."""
_MIN_POLL_INTERVAL = timedelta(milliseconds=50)


class Feed:
    """The feeds of the orgs of an application."""

    def __init__(self, app: App, *, max_scanned: int = _MAX_SCANNED) -> None:
        self._app = app
        self._max_scanned = max_scanned

    async def read(self, org_id: UUID | str, after: str | None = None, limit: int = 100) -> FeedPage:
        """Return the events after the cursor of a page or of an event; without one, from the oldest retained.

        Raise `CursorExpired` if retention has dropped events after the cursor. An unknown org raises.
        """
        org, size = org_uuid(org_id), page_size(limit)
        scan = await self._scan(org, decode_cursor(after, _parse_cursor) or BEGINNING, size)
        async with self._app.tenant_session(org) as conn:
            if not scan.positions:
                await check_org_exists(conn, org)
            cursors = [encode_cursor(*position) for position in scan.positions]
            events = await store.read(conn, org, scan.positions, cursors) if cursors else []
        if len(events) < len(scan.positions):
            raise _expired()  # dropped between the scan and the read
        return FeedPage(tuple(events), encode_cursor(*scan.end), scan.more)

    async def follow(
        self, org_id: UUID | str, after: str | None = None, *, every: timedelta = timedelta(seconds=1)
    ) -> AsyncIterator[FeedEvent]:
        """Yield every event after a cursor, then new ones without end; poll at least once per `every`.

        Store the `cursor` of the last processed event, and follow from there after a restart.
        """
        pause = min(_MIN_POLL_INTERVAL, every)
        while True:
            page = await self.read(org_id, after)
            for event in page.events:
                yield event
            after = page.after
            pause = min(_MIN_POLL_INTERVAL if page.events else pause * 2, every)
            _raise_if_cancelled()
            if not page.more:
                await asyncio.sleep(pause.total_seconds())

    async def tip(self, org_id: UUID | str) -> str:
        """Return the cursor of now: later commits follow it, and possibly some that happened just before."""
        org = org_uuid(org_id)
        async with self._app.tenant_session(org) as conn:
            await check_org_exists(conn, org)
        async with (await self._app.resources()).database.engine() as conn:
            return encode_cursor(*await store.read_tip(conn))

    async def _scan(self, org_id: UUID, after: FeedCursor, size: int) -> FeedScan:
        """Find the next events as the engine; their content is read on a session of the org."""
        async with (await self._app.resources()).database.engine() as conn:
            scan = await store.scan(conn, org_id, after, limit=size, max_scanned=self._max_scanned)
        if scan.unknown:
            raise ContractError(
                "the cursor is ahead of every transaction of this server",
                field="after",
                fix="start again without a cursor",
            )
        if scan.lost:
            raise _expired()
        return scan


def _raise_if_cancelled() -> None:
    """Python 3.11 may lose a cancellation that arrives with a response of the database; the task knows it."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _parse_cursor(drops: str, xid: str, job_id: str, event_seq: str) -> FeedCursor:
    cursor = FeedCursor(int(drops), int(xid), UUID(job_id), int(event_seq))
    if not (0 <= cursor.drops < 2**63 and 0 <= cursor.xid < 2**63 and 0 <= cursor.event_seq < 2**31):
        raise ValueError("out of range")
    return cursor


def _expired() -> CursorExpired:
    return CursorExpired(
        "retention has dropped events after the cursor", field="after", fix="start again without a cursor"
    )
