"""Sends messages to endpoints: many at a time, outside every transaction, and each endpoint by itself.

What is sent is held, longer than a try may take. Whoever dies in between leaves it held; when that is over,
another sends it again, under the same id. So a message arrives at least once, and those of one job to one
endpoint in order.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID, uuid4

import psycopg

from duly.db.database import retry_transaction
from duly.features.webhooks import delivery_store as deliveries
from duly.features.webhooks.allowed_urls import Places
from duly.features.webhooks.auto_disable import give_up
from duly.features.webhooks.backoff import broken_off, hopeless
from duly.features.webhooks.delivery_store import Claimed, Told, Tried
from duly.jobs.application import App
from duly.observability import metrics

if TYPE_CHECKING:
    from duly.features.webhooks.attempt import Courier

log = logging.getLogger("duly.webhooks")
_SOON, _AT_MOST = timedelta(milliseconds=50), timedelta(seconds=1)
_TOGETHER = 0.01
_GRACE = 2.0
_SLOW = 1.0
"""Seconds after which a try no longer takes the place of another: all it needs is a connection."""
_SLOW_MOST = 8
"""So many times as many tries may be under way with the slow ones."""


@dataclass(frozen=True, slots=True)
class DeliveryOptions:
    """How messages are sent."""

    public_url: str = ""
    limit: timedelta = timedelta(seconds=15)
    """What a try may take, from the first look for the address to the answer."""
    patience: timedelta = timedelta(days=3)
    """How long an endpoint may fail before it is disabled."""
    lease: timedelta | None = None
    """How long a message is held; more than a try may take."""
    most: int = 64
    """Tries of a process at a time, but for those that take their time."""
    each: int = 8
    """Of these, to one endpoint."""
    each_org: int = 32
    """And to all endpoints of one org."""


class _Flight(NamedTuple):
    """A try that is under way."""

    claimed: Claimed
    began: float


class Deliverer:
    """The chore that sends what is due. A slow receiver has its own tries under way, and holds up nobody."""

    name = "deliverer"

    def __init__(self, app: App, places: Places, options: DeliveryOptions | None = None) -> None:
        self._app = app
        self._places = places
        self._options = options or DeliveryOptions()
        self._lease = self._options.lease or 2 * self._options.limit + timedelta(seconds=15)
        self._holder = uuid4()
        self._flying: dict[asyncio.Task[Tried], _Flight] = {}
        self._walked: tuple[UUID, UUID] | None = None
        self._busy = False
        """Whether this walk has found anything to do."""
        self._pause = _SOON
        self._courier: Courier | None = None

    async def once(self) -> timedelta:
        """Settle what has ended, send what is due, so much at most; zero while something is under way."""
        settled = await self._settle()
        claimed = await self._take()
        self._busy = self._busy or settled + claimed > 0
        if self._walked is not None and self._free() > 0:
            return timedelta(0)
        # At its end, and only there: to walk past many that wait is not to be busy.
        busy, self._busy = self._busy, False
        self._pause = _SOON if busy else min(2 * self._pause, _AT_MOST)
        if not self._flying:
            return timedelta(0) if busy else self._pause
        await self._until_some_have_ended()
        return timedelta(0)

    async def _until_some_have_ended(self) -> None:
        """And a moment longer: those that end together are settled together."""
        soon = self._pause.total_seconds()
        await asyncio.wait(self._flying, timeout=soon, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait(self._flying, timeout=_TOGETHER)

    async def end(self) -> None:
        """Settle what ends within a moment, and give the rest back."""
        if self._flying:
            await asyncio.wait(self._flying, timeout=_GRACE)
            await self._settle()
            await self._release()
        if self._courier is not None:
            await self._courier.close()

    async def _take(self) -> int:
        free = self._free()
        if free <= 0:
            return 0
        flying = Counter(flight.claimed.key[:2] for flight in self._flying.values())
        claimed, told = await retry_transaction(lambda: self._claim(flying, free))
        for one in claimed:
            trying = (await self._open()).deliver(one, told.get(one.key))
            self._flying[asyncio.create_task(trying)] = _Flight(one, time.monotonic())
        return len(claimed)

    def _free(self) -> int:
        return _room(self._flying.values(), self._options.most)

    def _free_for_failing(self) -> int:
        """Half of the places are for endpoints that do not fail."""
        return _room([one for one in self._flying.values() if one.claimed.failing], self._options.most // 2)

    async def _claim(
        self, flying: Counter[tuple[UUID, UUID]], free: int
    ) -> tuple[list[Claimed], dict[deliveries.Key, Told]]:
        async with (await self._app.resources()).database.engine() as conn:
            if not self._flying and not await deliveries.expected(conn):
                return [], {}
            walk = await deliveries.claim(
                conn,
                self._holder,
                self._walked,
                flying,
                free=free,
                failing=max(0, self._free_for_failing()),
                each=self._options.each,
                each_org=self._options.each_org,
                lease=self._lease,
            )
            told = await deliveries.read(conn, [one.key for one in walk.claimed]) if walk.claimed else {}
        self._walked = walk.end
        return walk.claimed, told

    async def _open(self) -> Courier:
        """Loaded and made when there is something to send: it takes a moment, and most have no webhooks."""
        if self._courier is None:
            await asyncio.to_thread(import_module, "duly.features.webhooks.attempt")
            from duly.features.webhooks.attempt import opened

            limit, most = self._options.limit.total_seconds(), _SLOW_MOST * self._options.most
            self._courier = await opened(self._places, limit, most, self._options.public_url)
        return self._courier

    async def _settle(self) -> int:
        """Only when it is written down a try is over: should that fail, it is for the next round."""
        ended = [task for task in self._flying if task.done()]
        if not ended:
            return 0
        tried = [_outcome(task, self._flying[task].claimed) for task in ended]
        ours = await self._note(tried)
        for task in ended:
            del self._flying[task]
        _count(one for one in tried if one.claimed.key in ours)
        return len(ended)

    async def _note(self, tried: list[Tried]) -> set[deliveries.Key]:
        """Write what became of tries. Should one of them be refused, it is the only one that is not noted."""
        try:
            return await retry_transaction(lambda: self._write(tried))
        except (psycopg.DataError, psycopg.IntegrityError):
            log.exception("what became of %s messages could not be written", len(tried))
        noted = [await self._note(part) for part in _plainer(tried)]
        return set().union(*noted)

    async def _write(self, tried: list[Tried]) -> set[deliveries.Key]:
        async with (await self._app.resources()).database.engine() as conn:
            ours = await deliveries.settle(conn, self._holder, tried)
            valid = [one for one in tried if one.claimed.key in ours]
            for endpoint in await deliveries.judge(conn, valid, self._options.patience) if valid else ():
                if endpoint.shut:
                    log.warning("webhook %s fails, and is left alone for a while", endpoint.endpoint_id)
                if endpoint.given_up:
                    await give_up(conn, endpoint, self._options.patience)
        return ours

    async def _release(self) -> None:
        left = dict(self._flying)
        self._flying.clear()
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        if left:
            async with (await self._app.resources()).database.engine() as conn:
                await deliveries.release(conn, self._holder, [flight.claimed.key for flight in left.values()])


def _room(flights: Collection[_Flight], most: int) -> int:
    since = time.monotonic() - _SLOW
    quick = sum(flight.began > since for flight in flights)
    return min(most - quick, _SLOW_MOST * most - len(flights))


def _outcome(task: asyncio.Task[Tried], claimed: Claimed) -> Tried:
    """What became of a try, however it ended."""
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    if error is None:
        return task.result()
    log.error("a try broke off", exc_info=error)
    return broken_off(claimed, error, datetime.now(UTC))


def _plainer(tried: list[Tried]) -> list[list[Tried]]:
    """Each by itself; one alone as hopeless; and if not even that can be written, nothing of it."""
    if len(tried) > 1:
        return [[one] for one in tried]
    lost = [
        hopeless(one.claimed, "what became of it could not be written", datetime.now(UTC)) for one in tried
    ]
    return [lost] if tried[0].entry["error"] != lost[0].entry["error"] else []


def _count(tried: Iterable[Tried]) -> None:
    for status, n in Counter(one.status for one in tried).items():
        metrics.delivered("retried" if status == "pending" else status, n)
