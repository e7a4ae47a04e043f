"""Queues and workers as operators see them: what waits, what runs, and who does it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row
from pydantic import BaseModel, ConfigDict

from duly.db.pool import Connection
from duly.db.statements import statement


class Queue(BaseModel):
    """A queue: how much weight it has, whether it is paused, and from when on somebody is told."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    queue: str
    weight: int
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    alert_depth: int | None
    """More waiting jobs than that are an alert; None: what the settings say."""
    alert_wait: timedelta | None
    """A longer wait than that is an alert; None: what the settings say."""


class Count(BaseModel):
    """A number that was counted no further than needed."""

    model_config = ConfigDict(frozen=True)

    count: int
    at_least: bool
    """Whether there may be more."""

    def __str__(self) -> str:
        return f"{self.count}+" if self.at_least else str(self.count)


def counted(n: int, most: int) -> Count:
    """What was counted up to one more than `most`."""
    return Count(count=min(n, most), at_least=n > most)


class QueueStats(Queue):
    """A queue with what is in it. For dead letters, what waits are those that are open."""

    waiting: Count
    """Jobs that could start now."""
    scheduled: Count
    """Jobs whose time has not come, retries among them."""
    running: Count
    oldest_waiting_at: datetime | None
    """Since when the oldest waits, of those that are the next of their org and priority."""
    oldest_waiting_age: timedelta | None


class WorkerState(StrEnum):
    """What a worker is doing, as far as one hears."""

    WORKING = "working"
    DRAINING = "draining"
    SILENT = "silent"
    LOST = "lost"


class WorkerSnapshot(BaseModel):
    """One worker that has not said goodbye."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    worker_id: UUID
    name: str
    host: str
    pid: int
    version: str
    queues: list[str]
    slots: int
    running: int
    lease: timedelta
    started_at: datetime
    heartbeat_at: datetime
    draining_at: datetime | None
    """Since when it claims nothing more."""
    drain_requested_at: datetime | None
    """When an operator has asked it to drain."""
    drain_requested_by: str | None
    drain_reason: str | None
    state: WorkerState


async def list_known(conn: Connection) -> list[Queue]:
    """Every queue, the weightiest first."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("queues/list"))
        return [Queue.model_validate(row) async for row in cursor]


async def list_stats(conn: Connection, *, most: int, heads: int) -> list[QueueStats]:
    """Every queue with its counts, none of them counted beyond `most`."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("queues/stats"), {"most": most, "heads": heads})
        return [_stats(row, most) async for row in cursor]


async def list_workers(conn: Connection, *, limit: int) -> list[WorkerSnapshot]:
    """The workers that have not said goodbye; the lost ones as long as they are remembered."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("workers/list"), {"limit": limit})
        return [WorkerSnapshot.model_validate(row) async for row in cursor]


async def lock(conn: Connection, queue: str) -> Queue | None:
    """One queue, held for a change."""
    return await _queue(conn, "queues/lock", {"queue": queue})


async def create(conn: Connection, queue: str, weight: int) -> Queue | None:
    """A new queue; None if there is one of that name."""
    return await _queue(conn, "queues/create", {"queue": queue, "weight": weight})


async def change(conn: Connection, queue: Queue) -> Queue | None:
    """Give a locked queue other values; when it was paused the database knows."""
    return await _queue(conn, "queues/change", queue.model_dump())


async def _queue(conn: Connection, name: str, values: Mapping[str, Any]) -> Queue | None:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement(name), values)
        row = await cursor.fetchone()
    return Queue.model_validate(row) if row else None


def _stats(row: Mapping[str, Any], most: int) -> QueueStats:
    counted = {
        name: Count(count=min(row[name], most), at_least=row[name] > most or row[f"more_{name}"])
        for name in ("waiting", "scheduled", "running")
    }
    return QueueStats.model_validate({**row, **counted})
