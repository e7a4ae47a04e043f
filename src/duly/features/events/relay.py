"""Events become what is to be told: messages to webhooks, notifications of those who subscribed.

One relays at a time; it holds the mark that says how far it has come. What is to be told and the mark are
written in one transaction, so a crash leaves both or neither, and whoever comes next goes on from there. Only
events that are committed, and before which no transaction is open, are relayed: none is told that did not
happen, and none is passed by.

It only writes down what is to be told; sending it is others' business.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import timedelta

import psycopg

from duly.db.database import retry_transaction
from duly.db.pool import Connection
from duly.features.events import relay_store as relay
from duly.features.subscriptions import store as subscriptions
from duly.features.webhooks import delivery_store as deliveries
from duly.jobs.application import App

log = logging.getLogger("duly.maintenance")
_SOON, _AT_MOST = timedelta(milliseconds=100), timedelta(seconds=1)
_IN_VAIN = timedelta(seconds=10)
_LEAST = 50
_QUICK = 5.0
"""Seconds: a round that took longer is large enough."""
_REFUSED = (
    *(psycopg.DataError, psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded),
    *(ValueError, LookupError),
)
"""Errors of what is written: it would be the same the next time."""


class Relay:
    """The chore that relays events, in the order of their transactions."""

    name = "relay"

    def __init__(self, app: App, *, look: int = 5_000) -> None:
        self._app = app
        self._most = look
        self._look = look
        self._pause = _SOON

    async def once(self) -> timedelta:
        """Relay the next events, so many at most; zero if there are more."""
        asked = self._look
        looked = await self._bounded()
        if looked is None:
            return _IN_VAIN
        if looked == asked:
            return timedelta(0)
        # Where something happens, more will. Where nothing does, or nobody asks, a look a second is enough.
        self._pause = _SOON if looked else min(2 * self._pause, _AT_MOST)
        return self._pause

    async def _bounded(self) -> int | None:
        """A round. What was too much for one is not tried again as it was: it would be too much for ever."""
        began = time.monotonic()
        try:
            looked = await retry_transaction(self._round)
        except Exception:
            self._look = max(self._look // 2, min(_LEAST, self._most))
            raise
        if time.monotonic() - began < _QUICK:
            self._look = min(2 * self._look, self._most)
        return looked

    async def _round(self) -> int | None:
        async with (await self._app.resources()).database.engine() as conn:
            held = await relay.hold_mark(conn)
            if held is None:
                return 0
            if held.ahead:
                log.error("events come from a server with more transactions; see docs/operate/audit.md")
                return None
            if not held.wanted:
                await relay.follow(conn)
                return 0
            return await self._relay(conn, held.place)

    async def _relay(self, conn: Connection, after: relay.Place) -> int:
        seen = await relay.look(conn, after, most=self._look)
        if seen.found:
            await deliveries.write(conn, seen.found)
            await _tell(conn, seen.found)
        await relay.move_mark(conn, seen.end)
        return seen.looked


async def _tell(conn: Connection, found: Sequence[relay.Found]) -> None:
    """Note who is to be told. What cannot be noted for one org keeps nobody else from being told."""
    try:
        async with conn.transaction():
            await subscriptions.tell(conn, found)
        return
    except _REFUSED:
        orgs = sorted({one.org_id for one in found})
        if len(orgs) == 1:
            log.exception("org %s is not told how %s of its jobs went", orgs[0], len(found))
            return
    for org_id in orgs:
        await _tell(conn, [one for one in found if one.org_id == org_id])
