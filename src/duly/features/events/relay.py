"""The relay: turns committed events into webhook deliveries and into notifications of subscribers.

One relay runs at a time; it locks the mark that says how far events are relayed. Deliveries, notifications
and the mark are written in one transaction: after a crash all of them are there or none, and the next relay
continues from the mark. Only committed events before the oldest open transaction are relayed: none that was
rolled back, and none is skipped.

The relay only writes deliveries and notifications; the deliverer and the notifier send them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import timedelta

import psycopg

from duly.db.database import retry_transaction
from duly.db.pool import Connection
from duly.features.events import relay_store
from duly.features.events.models import RelayedEvent
from duly.features.subscriptions.service import notify_subscribers
from duly.features.webhooks.deliveries import create_deliveries
from duly.jobs.application import App

log = logging.getLogger("duly.maintenance")
_MIN_PAUSE, _MAX_PAUSE = timedelta(milliseconds=100), timedelta(seconds=1)
_PAUSE_WHEN_AHEAD = timedelta(seconds=10)
_MIN_BATCH_SIZE = 50
_MAX_ROUND_SECONDS = 5.0
"""After a longer round the batch does not grow."""
_PERMANENT_ERRORS = (
    *(psycopg.DataError, psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded),
    *(ValueError, LookupError),
)
"""Errors caused by the written data: a retry would fail again."""


class Relay:
    """The chore that relays events in commit order."""

    name = "relay"

    def __init__(self, app: App, *, batch_size: int = 5_000) -> None:
        self._app = app
        self._max_batch_size = batch_size
        self._batch_size = batch_size
        self._pause = _MIN_PAUSE

    async def once(self) -> timedelta:
        """Relay the next batch of events; return zero if there are more."""
        batch_size = self._batch_size
        scanned = await self._adapt_batch_size()
        if scanned is None:
            return _PAUSE_WHEN_AHEAD
        if scanned == batch_size:
            return timedelta(0)
        # Events come in bursts. Without events or listeners, one scan a second suffices.
        self._pause = _MIN_PAUSE if scanned else min(2 * self._pause, _MAX_PAUSE)
        return self._pause

    async def _adapt_batch_size(self) -> int | None:
        """Run a round. Halve the batch after a failure: one that is too large would fail for ever."""
        started_at = time.monotonic()
        try:
            scanned = await retry_transaction(self._round)
        except Exception:
            self._batch_size = max(self._batch_size // 2, min(_MIN_BATCH_SIZE, self._max_batch_size))
            raise
        if time.monotonic() - started_at < _MAX_ROUND_SECONDS:
            self._batch_size = min(2 * self._batch_size, self._max_batch_size)
        return scanned

    async def _round(self) -> int | None:
        """Relay one batch; return how many events were scanned, or None if the mark is not of this server."""
        async with (await self._app.resources()).database.engine() as conn:
            locked = await relay_store.lock_mark(conn)
            if locked is None:
                return 0
            if locked.ahead:
                log.error("events come from a server with more transactions; see docs/operate/audit.md")
                return None
            if not locked.has_listeners:
                await relay_store.skip_to_tip(conn)
                return 0
            batch = await relay_store.read_batch(conn, locked.mark, max_scanned=self._batch_size)
            if batch.events:
                await create_deliveries(conn, batch.events)
                await _notify_each_org(conn, batch.events)
            await relay_store.move_mark(conn, batch.end)
            return batch.scanned


async def _notify_each_org(conn: Connection, events: Sequence[RelayedEvent]) -> None:
    """Write the notifications of subscribers. Those that fail for one org do not hold up other orgs."""
    try:
        async with conn.transaction():
            await notify_subscribers(conn, events)
        return
    except _PERMANENT_ERRORS:
        orgs = sorted({event.org_id for event in events})
        if len(orgs) == 1:
            log.exception("could not notify subscribers of org %s of %s events", orgs[0], len(events))
            return
    for org_id in orgs:
        await _notify_each_org(conn, [event for event in events if event.org_id == org_id])
