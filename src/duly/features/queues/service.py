"""Queues and workers: create, weigh, pause, count, drain. Each change is audited in its transaction."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from duly.core.errors import Conflict, ContractError, UnknownQueue, UnknownWorker
from duly.core.job import SYSTEM_ORG, Actor
from duly.core.policy import DEAD_LETTER_QUEUE
from duly.db.pool import Connection
from duly.features.arguments import required_text, required_uuid
from duly.features.audit.entries import (
    ChangeRequest,
    audited_transaction,
    change_request,
    change_under_lock,
    record_entry,
)
from duly.features.limits.models import UNCHANGED, Unchanged
from duly.features.queues import store
from duly.features.queues.models import Queue, QueueStats, WorkerSnapshot
from duly.features.queues.store import list_workers, read_stats
from duly.jobs.application import App
from duly.worker import workers_store

__all__ = ["MAX_COUNT", "Queue", "QueueStats", "Queues", "WorkerSnapshot", "list_workers", "read_stats"]

MAX_COUNT = 10_000
"""How far the jobs of a queue are counted."""
_MAX_HEADS = 1_000
_MAX_WORKERS = 1_000
MAX_WEIGHT = 1_000
_MIN_ALERT_WAIT, _MAX_ALERT_WAIT = timedelta(seconds=1), timedelta(days=365)
_QUEUE_NAME = re.compile(r"q:[a-z][a-z0-9_-]{0,47}")


class Queues:
    """The queues of an installation. They belong to no org: their audit trail is the system's."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def known(self) -> list[Queue]:
        """Return the queues without their counts, highest weight first."""
        async with (await self._app.resources()).database.engine() as conn:
            return await store.list_queues(conn)

    async def stats(self) -> list[QueueStats]:
        """Return the queues with their queued, scheduled and running jobs, highest weight first."""
        async with (await self._app.resources()).database.engine() as conn:
            return await read_stats(conn, max_count=MAX_COUNT, max_heads=_MAX_HEADS)

    async def workers(self) -> list[WorkerSnapshot]:
        """Return the workers that have not stopped, newest first."""
        async with (await self._app.resources()).database.engine() as conn:
            return await list_workers(conn, limit=_MAX_WORKERS)

    async def drain(self, worker_id: UUID | str, *, actor: Actor, reason: str) -> WorkerSnapshot:
        """Drain a worker, as SIGTERM does: it claims no more jobs, finishes or returns its own, and stops.

        The worker reads the request with its next heartbeat. Idempotent; an unknown or stopped worker raises.
        """
        worker, request = required_uuid("worker_id", worker_id), change_request(actor, reason)

        async def change(conn: Connection) -> WorkerSnapshot:
            is_new = await workers_store.request_drain(conn, worker, by=request.by, reason=request.reason)
            workers = await list_workers(conn, limit=_MAX_WORKERS)
            snapshot = next((one for one in workers if one.worker_id == worker), None)
            if is_new is None or snapshot is None:
                raise UnknownWorker(
                    f"no running worker {worker}", field="worker_id", fix="check the list of workers"
                )
            if is_new:
                await record_entry(
                    conn, request, SYSTEM_ORG, "worker.drain_requested", str(worker), name=snapshot.name
                )
            return snapshot

        return await audited_transaction(self._app, change)

    async def create(self, queue: str, weight: int = 1, *, actor: Actor, reason: str) -> Queue:
        """Create a queue, for workers that serve it. Idempotent."""
        name, request = _checked_name(queue), change_request(actor, reason)
        _check_weight(weight)

        async def change(conn: Connection) -> Queue:
            created = await store.create_queue(conn, name, weight)
            if created is not None:
                await record_entry(conn, request, SYSTEM_ORG, "queue.created", name, weight=weight)
                return created
            existing = await _lock_queue(conn, name)
            if existing.weight != weight:
                raise Conflict(
                    f"{name} exists, with weight {existing.weight}",
                    field="queue",
                    fix="change its weight, or choose another name",
                )
            return existing

        result = await audited_transaction(self._app, change)
        await self._wake_workers()
        return result

    async def pause(self, queue: str, *, actor: Actor, reason: str) -> Queue:
        """Pause a queue until it is resumed: running jobs continue, queued ones wait."""
        request = change_request(actor, reason)
        values = {"paused_by": request.by, "pause_reason": request.reason}
        return await self._change(queue, request, "paused", lambda now: {} if now.paused_at else values)

    async def resume(self, queue: str, *, actor: Actor, reason: str) -> Queue:
        """Resume a paused queue."""
        values = {"paused_by": None, "pause_reason": None}
        request = change_request(actor, reason)
        return await self._change(queue, request, "resumed", lambda now: values if now.paused_at else {})

    async def set_weight(self, queue: str, weight: int, *, actor: Actor, reason: str) -> Queue:
        """Set the share of the workers' free slots that a queue gets."""
        _check_weight(weight)
        changed = partial(_changed_fields, values={"weight": weight})
        return await self._change(queue, change_request(actor, reason), "weighed", changed)

    async def set_alerts(
        self,
        queue: str,
        *,
        depth: int | Unchanged | None = UNCHANGED,
        wait: timedelta | Unchanged | None = UNCHANGED,
        actor: Actor,
        reason: str,
    ) -> Queue:
        """Set the number of queued jobs and the wait above which a queue raises alerts.

        Omitted thresholds stay; None restores the default of the settings.
        """
        changed = partial(_changed_fields, values=_checked_alerts(depth, wait))
        return await self._change(queue, change_request(actor, reason), "alerts_set", changed)

    async def _change(
        self,
        queue: str,
        request: ChangeRequest,
        action: str,
        changed_fields: Callable[[Queue], Mapping[str, Any]],
    ) -> Queue:
        async def save(conn: Connection, current: Queue, values: Mapping[str, Any]) -> Queue:
            changed = await store.change_queue(conn, current.model_copy(update=dict(values)))
            detail = _audit_detail(current, changed)
            await record_entry(conn, request, SYSTEM_ORG, f"queue.{action}", current.queue, **detail)
            return changed

        lock = partial(_lock_queue, name=_checked_name(queue))
        result = await change_under_lock(self._app, lock, changed_fields, save)
        await self._wake_workers()
        return result

    async def _wake_workers(self) -> None:
        (await self._app.resources()).waker.wake()


async def _lock_queue(conn: Connection, name: str) -> Queue:
    queue = await store.lock_queue(conn, name)
    if queue is None:
        raise UnknownQueue(f"no queue {name}", field="queue", fix="create it, or check the list of queues")
    return queue


def _changed_fields(queue: Queue, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if getattr(queue, name) != value}


def _checked_name(queue: str) -> str:
    if not _QUEUE_NAME.fullmatch(required_text("queue", queue)):
        raise ContractError(
            f"{queue!r} is not a queue name", field="queue", fix="use q: and lower case, as in q:default"
        )
    if queue == DEAD_LETTER_QUEUE:
        raise ContractError(
            "workers do not serve dead letters", field="queue", fix="replay the dead letters instead"
        )
    return queue


def _audit_detail(before: Queue, after: Queue) -> dict[str, Any]:
    if before.weight != after.weight:
        return {"weight": after.weight, "before": before.weight}
    old, new = _alerts(before), _alerts(after)
    return {**new, "before": old} if old != new else {}


def _alerts(queue: Queue) -> dict[str, Any]:
    seconds = None if queue.alert_wait is None else queue.alert_wait.total_seconds()
    return {"alert_depth": queue.alert_depth, "alert_wait": seconds}


def _checked_alerts(depth: int | Unchanged | None, wait: timedelta | Unchanged | None) -> dict[str, Any]:
    if depth not in (UNCHANGED, None) and (type(depth) is not int or not 1 <= depth < MAX_COUNT):
        raise ContractError(
            f"{depth!r} is out of range", field="alert_depth", fix=f"use 1 to {MAX_COUNT - 1}"
        )
    if isinstance(wait, timedelta) and not _MIN_ALERT_WAIT <= wait <= _MAX_ALERT_WAIT:
        raise ContractError(f"{wait} is out of range", field="alert_wait", fix="use a second to a year")
    values = {"alert_depth": depth, "alert_wait": wait}
    return {name: value for name, value in values.items() if value is not UNCHANGED}


def _check_weight(weight: int) -> None:
    if type(weight) is not int or not 1 <= weight <= MAX_WEIGHT:
        raise ContractError(f"{weight!r} is out of range", field="weight", fix=f"use 1 to {MAX_WEIGHT}")
