"""Queues: made, weighed, paused and looked at. Each change is audited in its own transaction."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from duly.core.errors import Conflict, ContractError, MissingField, UnknownQueue, UnknownWorker
from duly.core.job import SYSTEM_ORG, Actor
from duly.core.policy import DEAD_LETTER_QUEUE
from duly.db.pool import Connection
from duly.features.arguments import required_text
from duly.features.audit.entries import ChangeRequest, audited_transaction, change_request, record_entry
from duly.features.limits.rules import UNCHANGED, Unchanged
from duly.features.queues import store as queues
from duly.features.queues.store import Queue, QueueStats, WorkerSnapshot
from duly.jobs.application import App
from duly.jobs.request_context import as_uuid
from duly.worker import workers_store as workers

__all__ = ["Queue", "QueueStats", "Queues", "WorkerSnapshot"]

MOST = 10_000
"""No count goes further than this."""
_HEADS = 1_000
_WORKERS = 1_000
_HEAVIEST = 1_000
_SECOND, _LONGEST = timedelta(seconds=1), timedelta(days=365)
_NAME = re.compile(r"q:[a-z][a-z0-9_-]{0,47}")


class Queues:
    """The queues of an installation. They belong to no org, so their audit trail is the system's."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def known(self) -> list[Queue]:
        """Every queue without its figures, the weightiest first."""
        async with (await self._app.resources()).database.engine() as conn:
            return await queues.list_known(conn)

    async def stats(self) -> list[QueueStats]:
        """Every queue with what waits, what is to come and what runs; the weightiest first."""
        async with (await self._app.resources()).database.engine() as conn:
            return await queues.list_stats(conn, most=MOST, heads=_HEADS)

    async def workers(self) -> list[WorkerSnapshot]:
        """The workers that have not said goodbye, the youngest first."""
        async with (await self._app.resources()).database.engine() as conn:
            return await queues.list_workers(conn, limit=_WORKERS)

    async def drain(self, worker_id: UUID | str, *, actor: Actor, reason: str) -> WorkerSnapshot:
        """Have a worker drain, as by SIGTERM: it takes nothing more, finishes or gives back its jobs, ends.

        It hears of it with its next heartbeat. Asked again, it changes nothing. An unknown one raises, and so
        does one that has gone.
        """
        which, who = _worker(worker_id), change_request(actor, reason)

        async def once(conn: Connection) -> WorkerSnapshot:
            is_new = await workers.request_drain(conn, which, by=who.by, reason=who.reason)
            found = [one for one in await queues.list_workers(conn, limit=_WORKERS) if one.worker_id == which]
            if is_new is None or not found:
                raise UnknownWorker(
                    f"no worker {which} is at work", field="worker_id", fix="look at the list of workers"
                )
            if is_new:
                await record_entry(
                    conn, who, SYSTEM_ORG, "worker.drain_requested", str(which), name=found[0].name
                )
            return found[0]

        return await audited_transaction(self._app, once)

    async def create(self, queue: str, weight: int = 1, *, actor: Actor, reason: str) -> Queue:
        """Make a queue, for workers that have it among theirs. Asked again, it changes nothing."""
        name, who = _name(queue), change_request(actor, reason)
        _check_weight(weight)

        async def once(conn: Connection) -> Queue:
            made = await queues.create(conn, name, weight)
            if made is not None:
                await record_entry(conn, who, SYSTEM_ORG, "queue.created", name, weight=weight)
                return made
            existing = await _locked(conn, name)
            if existing.weight != weight:
                raise Conflict(
                    f"{name} is there, with weight {existing.weight}",
                    field="queue",
                    fix="change its weight, or choose another name",
                )
            return existing

        return await self._transaction(once)

    async def pause(self, queue: str, *, actor: Actor, reason: str) -> Queue:
        """Start nothing from it until it is resumed; what runs goes on, new jobs wait."""
        who = change_request(actor, reason)
        return await self._change(
            queue,
            who,
            "paused",
            lambda now: {} if now.paused_at else {"paused_by": who.by, "pause_reason": who.reason},
        )

    async def resume(self, queue: str, *, actor: Actor, reason: str) -> Queue:
        """Let its jobs start again."""
        return await self._change(
            queue,
            change_request(actor, reason),
            "resumed",
            lambda now: {"paused_by": None, "pause_reason": None} if now.paused_at else {},
        )

    async def set_weight(self, queue: str, weight: int, *, actor: Actor, reason: str) -> Queue:
        """Give it another share of the workers' free slots."""
        _check_weight(weight)
        return await self._change(
            queue,
            change_request(actor, reason),
            "weighed",
            lambda now: {} if now.weight == weight else {"weight": weight},
        )

    async def set_alerts(
        self,
        queue: str,
        *,
        depth: int | Unchanged | None = UNCHANGED,
        wait: timedelta | Unchanged | None = UNCHANGED,
        actor: Actor,
        reason: str,
    ) -> Queue:
        """Beyond how many waiting jobs, or how long a wait, there is an alert.

        What is left out stays; None is what the settings say.
        """
        wanted = _alerts_wanted(depth, wait)
        return await self._change(
            queue,
            change_request(actor, reason),
            "alerts_set",
            lambda now: {name: value for name, value in wanted.items() if getattr(now, name) != value},
        )

    async def _change(
        self, queue: str, who: ChangeRequest, action: str, changed: Callable[[Queue], dict[str, Any]]
    ) -> Queue:
        """Change a queue under its lock. A change of nothing leaves no trace."""
        name = _name(queue)

        async def once(conn: Connection) -> Queue:
            now = await _locked(conn, name)
            values = changed(now)
            if not values:
                return now
            after = await queues.change(conn, now.model_copy(update=values))
            assert after is not None
            await record_entry(conn, who, SYSTEM_ORG, f"queue.{action}", name, **_detail(now, after))
            return after

        return await self._transaction(once)

    async def _transaction(self, work: Callable[[Connection], Awaitable[Queue]]) -> Queue:
        done = await audited_transaction(self._app, work)
        (await self._app.resources()).waker.wake()
        return done


async def _locked(conn: Connection, queue: str) -> Queue:
    found = await queues.lock(conn, queue)
    if found is None:
        raise UnknownQueue(f"no queue {queue}", field="queue", fix="create it, or look at the list of queues")
    return found


def _worker(worker_id: UUID | str) -> UUID:
    found = as_uuid("worker_id", worker_id)
    if found is None:
        raise MissingField("missing", field="worker_id", fix="say which worker")
    return found


def _name(queue: str) -> str:
    if not _NAME.fullmatch(required_text("queue", queue)):
        raise ContractError(
            f"{queue!r} is no queue", field="queue", fix="use q: and lower case, as in q:default"
        )
    if queue == DEAD_LETTER_QUEUE:
        raise ContractError("nothing runs from there", field="queue", fix="dead letters are replayed instead")
    return queue


def _detail(before: Queue, after: Queue) -> dict[str, Any]:
    """What the audit trail says of a change, beside who and why."""
    if before.weight != after.weight:
        return {"weight": after.weight, "before": before.weight}
    was, now = _alerts(before), _alerts(after)
    return {**now, "before": was} if was != now else {}


def _alerts(queue: Queue) -> dict[str, Any]:
    seconds = None if queue.alert_wait is None else queue.alert_wait.total_seconds()
    return {"alert_depth": queue.alert_depth, "alert_wait": seconds}


def _alerts_wanted(depth: int | Unchanged | None, wait: timedelta | Unchanged | None) -> dict[str, Any]:
    if depth is not UNCHANGED and depth is not None and (type(depth) is not int or not 1 <= depth < MOST):
        raise ContractError(f"{depth!r} is out of range", field="alert_depth", fix=f"use 1 to {MOST - 1}")
    if isinstance(wait, timedelta) and not _SECOND <= wait <= _LONGEST:
        raise ContractError(f"{wait} is out of range", field="alert_wait", fix="use a second to a year")
    given = {"alert_depth": depth, "alert_wait": wait}
    return {name: value for name, value in given.items() if value is not UNCHANGED}


def _check_weight(weight: int) -> None:
    if type(weight) is not int or not 1 <= weight <= _HEAVIEST:
        raise ContractError(f"{weight!r} is out of range", field="weight", fix=f"use 1 to {_HEAVIEST}")
