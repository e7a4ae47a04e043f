"""Statements on queues and workers, for operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duly.db.pool import Connection
from duly.db.rows import read_all, read_first, rows
from duly.features.pagination import Count
from duly.features.queues.models import Queue, QueueStats, WorkerSnapshot


async def list_queues(conn: Connection) -> list[Queue]:
    """Return the queues, highest weight first."""
    return await read_all(conn, Queue, "queues/list", {})


async def read_stats(conn: Connection, *, max_count: int, max_heads: int) -> list[QueueStats]:
    """Return the queues with their counts, each up to `max_count`; highest weight first."""
    found = await rows(conn, "queues/read_stats", {"max_count": max_count, "max_heads": max_heads})
    return [_stats(row, max_count) for row in found]


async def list_workers(conn: Connection, *, limit: int) -> list[WorkerSnapshot]:
    """Return the workers that have not stopped, including lost ones until retention deletes them."""
    return await read_all(conn, WorkerSnapshot, "workers/list", {"limit": limit})


async def lock_queue(conn: Connection, queue: str) -> Queue | None:
    """Lock a queue for a change."""
    return await read_first(conn, Queue, "queues/lock", {"queue": queue})


async def create_queue(conn: Connection, queue: str, weight: int) -> Queue | None:
    """Create a queue; None if one of that name exists."""
    return await read_first(conn, Queue, "queues/create", {"queue": queue, "weight": weight})


async def change_queue(conn: Connection, queue: Queue) -> Queue:
    """Write the fields of a locked queue; the database sets the time of a pause."""
    [changed] = await read_all(conn, Queue, "queues/change", queue.model_dump())
    return changed


def _stats(row: Mapping[str, Any], max_count: int) -> QueueStats:
    counts = {
        name: Count(count=min(row[name], max_count), at_least=row[name] > max_count or row[f"more_{name}"])
        for name in ("waiting", "scheduled", "running")
    }
    return QueueStats.model_validate({**row, **counts})
