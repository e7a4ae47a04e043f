"""Statements of the retention: drop partitions, delete rows in batches, release blobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, NamedTuple

from duly.core.policy import Retention
from duly.db.pool import Connection
from duly.db.statements import statement

BATCH = 500
"""Maximum number of rows that one statement deletes or changes."""


class PartitionResult(NamedTuple):
    """What was done with one partition, and why it is still there, if it is."""

    partition: str
    outcome: Literal["dropped", "deleted", "kept", "busy"]
    why: str | None
    row_count: int | None


class ReleasedBlob(NamedTuple):
    """A released blob, and whether a row references it again."""

    ref: str
    named: bool


def retention_by_table(keep: Retention) -> dict[str, timedelta | None]:
    """Return the retention of each partitioned table in the order of dropping; None means for ever."""
    return {
        "event_log": keep.events,
        "job_logs": keep.events,
        # A webhook body is made from its event whenever it is sent.
        "webhook_deliveries": keep.events,
        "result_partials": keep.partial_results,
        "result_finals": keep.final_results,
        "job_records": keep.jobs,
        "job_states": keep.jobs,
        "schedule_ticks": keep.schedule_ticks,
        "audit_entries": keep.audit,
    }


async def ensure_partitions(conn: Connection) -> int:
    """Create the partitions of the coming weeks; return how many were missing."""
    row = await (await conn.execute(statement("retention/ensure_partitions"))).fetchone()
    return int(row[0]) if row else 0


async def drop_expired_partitions(conn: Connection, parent: str, keep: timedelta) -> list[PartitionResult]:
    """Drop one expired partition; return the result of each that was considered."""
    values = {"parent": parent, "keep": keep}
    cursor = await conn.execute(statement("retention/drop_expired_partitions"), values)
    return [PartitionResult(*row) for row in await cursor.fetchall()]


async def run_batch(conn: Connection, verb: str, keep: timedelta | None = None, limit: int = BATCH) -> int:
    """Run a statement that deletes or expires at most `limit` rows; return how many it was."""
    cursor = await conn.execute(statement(f"retention/{verb}"), {"keep": keep, "limit": limit})
    if cursor.description is None:
        return cursor.rowcount
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def list_released_blobs(conn: Connection, *, limit: int = BATCH) -> list[ReleasedBlob]:
    """Return the oldest released blobs. Those that a row references again are off the list now."""
    cursor = await conn.execute(statement("retention/list_released_blobs"), {"limit": limit})
    return [ReleasedBlob(*row) for row in await cursor.fetchall()]


async def delete_released_blobs(conn: Connection, refs: Sequence[str]) -> None:
    """Delete the rows of blobs that were removed from the store."""
    await conn.execute(statement("retention/delete_released_blobs"), {"blob_refs": list(refs)})
