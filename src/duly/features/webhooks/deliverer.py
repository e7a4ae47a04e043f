"""The deliverer: sends due deliveries, many at a time, outside transactions, each endpoint independently.

A delivery in flight is leased for longer than an attempt may take. If its process dies, the lease expires and
another process sends it again, under the same id. So every message is delivered at least once, and those of
one job to one endpoint in order.
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
from duly.features.webhooks import delivery_store
from duly.features.webhooks.allowed_destinations import AllowedUrls
from duly.features.webhooks.failures import crashed, disable_failing, undeliverable
from duly.features.webhooks.models import AttemptResult, ClaimedDelivery, DeliveryKey, OutboundMessage
from duly.jobs.application import App
from duly.observability import metrics

if TYPE_CHECKING:
    from duly.features.webhooks.sender import Sender

log = logging.getLogger("duly.webhooks")
_MIN_PAUSE, _MAX_PAUSE = timedelta(milliseconds=50), timedelta(seconds=1)
_SETTLE_DELAY = 0.01
"""Seconds to wait for attempts that end together: they are settled together."""
_STOP_TIMEOUT = 2.0
_SLOW_AFTER = 1.0
"""Seconds after which an attempt no longer takes a slot: all it needs is a connection."""
_MAX_SLOW_FACTOR = 8
"""Attempts in flight including slow ones, as a multiple of the slots."""
_NOT_WRITTEN = "the result could not be written"


@dataclass(frozen=True, slots=True)
class DeliveryOptions:
    """Options of the deliverer."""

    public_url: str = ""
    timeout: timedelta = timedelta(seconds=15)
    """The time limit of an attempt, from the lookup of the host to the response."""
    disable_after: timedelta = timedelta(days=3)
    """How long an endpoint may fail before it is disabled."""
    lease: timedelta | None = None
    """The lease of a delivery; longer than an attempt may take."""
    slots: int = 64
    """Concurrent attempts of a process, without slow ones."""
    per_endpoint: int = 8
    """Of these, to one endpoint."""
    per_org: int = 32
    """Of these, to all endpoints of one org."""


class _InFlight(NamedTuple):
    """An attempt in flight."""

    delivery: ClaimedDelivery
    started_at: float


class Deliverer:
    """The chore that sends due deliveries. A slow receiver only delays its own deliveries."""

    name = "deliverer"

    def __init__(self, app: App, allowed: AllowedUrls, options: DeliveryOptions | None = None) -> None:
        self._app = app
        self._allowed = allowed
        self._options = options or DeliveryOptions()
        self._lease = self._options.lease or 2 * self._options.timeout + timedelta(seconds=15)
        self._holder = uuid4()
        self._in_flight: dict[asyncio.Task[AttemptResult], _InFlight] = {}
        self._continue_after: tuple[UUID, UUID] | None = None
        self._busy = False
        """Whether this walk over the endpoints has claimed or settled a delivery."""
        self._pause = _MIN_PAUSE
        self._sender: Sender | None = None

    async def once(self) -> timedelta:
        """Settle ended attempts and start due ones, up to the slots; return zero while some are in flight."""
        settled = await self._settle()
        started = await self._start()
        self._busy = self._busy or settled + started > 0
        if self._continue_after is not None and self._free_slots() > 0:
            return timedelta(0)
        # Only at the end of a walk: to walk past many deliveries that are not due is not to be busy.
        busy, self._busy = self._busy, False
        self._pause = _MIN_PAUSE if busy else min(2 * self._pause, _MAX_PAUSE)
        if not self._in_flight:
            return timedelta(0) if busy else self._pause
        seconds = self._pause.total_seconds()
        await asyncio.wait(self._in_flight, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait(self._in_flight, timeout=_SETTLE_DELAY)
        return timedelta(0)

    async def end(self) -> None:
        """Settle the attempts that end soon, and release the others."""
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=_STOP_TIMEOUT)
            await self._settle()
            await self._release()
        if self._sender is not None:
            await self._sender.close()

    async def _start(self) -> int:
        free = self._free_slots()
        if free <= 0:
            return 0
        deliveries, messages = await retry_transaction(lambda: self._claim(free))
        for delivery in deliveries:
            sender = await self._open_sender()
            task = asyncio.create_task(sender.deliver(delivery, messages.get(delivery.key)))
            self._in_flight[task] = _InFlight(delivery, time.monotonic())
        return len(deliveries)

    def _free_slots(self) -> int:
        return _free(self._in_flight.values(), self._options.slots)

    def _free_slots_for_failing(self) -> int:
        """Half of the slots are reserved for endpoints that do not fail."""
        failing = [attempt for attempt in self._in_flight.values() if attempt.delivery.failing]
        return max(0, _free(failing, self._options.slots // 2))

    async def _claim(self, free: int) -> tuple[list[ClaimedDelivery], dict[DeliveryKey, OutboundMessage]]:
        async with (await self._app.resources()).database.engine() as conn:
            if not self._in_flight and not await delivery_store.has_endpoints(conn):
                return [], {}
            claim = await delivery_store.claim(
                conn,
                self._holder,
                self._continue_after,
                Counter(attempt.delivery.key[:2] for attempt in self._in_flight.values()),
                limit=free,
                max_failing=self._free_slots_for_failing(),
                per_endpoint=self._options.per_endpoint,
                per_org=self._options.per_org,
                lease=self._lease,
            )
            keys = [delivery.key for delivery in claim.deliveries]
            messages = await delivery_store.read_messages(conn, keys) if keys else {}
        self._continue_after = claim.continue_after
        return claim.deliveries, messages

    async def _open_sender(self) -> Sender:
        """Load the sender for the first delivery: it takes a moment, and many installations never need it."""
        if self._sender is None:
            await asyncio.to_thread(import_module, "duly.features.webhooks.sender")
            from duly.features.webhooks.network_backend import NetworkGuard
            from duly.features.webhooks.sender import Sender, trusted_certificates

            self._sender = Sender(
                NetworkGuard(self._allowed),
                timeout=self._options.timeout.total_seconds(),
                connections=_MAX_SLOW_FACTOR * self._options.slots,
                public_url=self._options.public_url,
                trust=await asyncio.to_thread(trusted_certificates),
            )
        return self._sender

    async def _settle(self) -> int:
        """Settle ended attempts. If that fails, the next round tries again."""
        ended = [task for task in self._in_flight if task.done()]
        if not ended:
            return 0
        results = [_result(task, self._in_flight[task].delivery) for task in ended]
        settled = await self._write(results)
        for task in ended:
            del self._in_flight[task]
        _count(result for result in results if result.delivery.key in settled)
        return len(ended)

    async def _write(self, results: list[AttemptResult]) -> set[DeliveryKey]:
        """Write results. If the database refuses one of them, only that one is not written."""
        try:
            return await retry_transaction(lambda: self._write_once(results))
        except (psycopg.DataError, psycopg.IntegrityError):
            log.exception("could not write the results of %s webhook attempts", len(results))
        settled = [await self._write(part) for part in _simplify(results)]
        return set().union(*settled)

    async def _write_once(self, results: list[AttemptResult]) -> set[DeliveryKey]:
        disable_after = self._options.disable_after
        async with (await self._app.resources()).database.engine() as conn:
            settled = await delivery_store.settle(conn, self._holder, results)
            valid = [result for result in results if result.delivery.key in settled]
            for health in await delivery_store.update_breakers(conn, valid, disable_after) if valid else ():
                if health.opened:
                    log.warning("opened the circuit breaker of webhook %s", health.endpoint_id)
                if health.must_disable:
                    await disable_failing(conn, health, disable_after)
        return settled

    async def _release(self) -> None:
        unfinished = dict(self._in_flight)
        self._in_flight.clear()
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        if unfinished:
            keys = [attempt.delivery.key for attempt in unfinished.values()]
            async with (await self._app.resources()).database.engine() as conn:
                await delivery_store.release(conn, self._holder, keys)


def _free(attempts: Collection[_InFlight], slots: int) -> int:
    slow_since = time.monotonic() - _SLOW_AFTER
    quick = sum(attempt.started_at > slow_since for attempt in attempts)
    return min(slots - quick, _MAX_SLOW_FACTOR * slots - len(attempts))


def _result(task: asyncio.Task[AttemptResult], delivery: ClaimedDelivery) -> AttemptResult:
    """Return the result of a task, even if it raised or was cancelled."""
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    if error is None:
        return task.result()
    log.error("webhook attempt crashed", exc_info=error)
    return crashed(delivery, error, datetime.now(UTC))


def _simplify(results: list[AttemptResult]) -> list[list[AttemptResult]]:
    """Split refused results; replace a single one by a plain failure; give up if that is refused, too."""
    if len(results) > 1:
        return [[result] for result in results]
    [result] = results
    if result.log_entry["error"] == _NOT_WRITTEN:
        return []
    return [[undeliverable(result.delivery, _NOT_WRITTEN, datetime.now(UTC))]]


def _count(results: Iterable[AttemptResult]) -> None:
    for status, count in Counter(result.status for result in results).items():
        metrics.count_webhook_deliveries("retried" if status == "pending" else status, count)
