"""What is kept no longer: partitions dropped, rows deleted in batches, blobs released."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, NamedTuple

from duly.model.retention import Retention
from duly.store.pool import Connection
from duly.store.statements import statement

BATCH = 500
"""The most rows that one statement deletes or changes."""


class Step(NamedTuple):
    """What became of one partition, and why if it is still there."""

    partition: str
    outcome: Literal["dropped", "deleted", "kept", "busy"]
    why: str | None
    row_count: int | None


class Blob(NamedTuple):
    """A released blob, and whether a row names it again."""

    ref: str
    named: bool


def kept_for(keep: Retention) -> dict[str, timedelta | None]:
    """How long the rows of each partitioned table are kept, in the order in which they go; None: for ever."""
    return {
        "event_log": keep.events,
        "job_logs": keep.events,
        # A message is made from its event whenever it is sent.
        "webhook_deliveries": keep.events,
        "result_partials": keep.partial_results,
        "result_finals": keep.final_results,
        "job_records": keep.jobs,
        "job_states": keep.jobs,
        "schedule_ticks": keep.schedule_ticks,
        "audit_entries": keep.audit,
    }


async def ensure_partitions(conn: Connection) -> int:
    """Make the partitions of the time to come; how many were missing."""
    row = await (await conn.execute(statement("retention/ensure_partitions"))).fetchone()
    return int(row[0]) if row else 0


async def drop_expired_partitions(conn: Connection, parent: str, keep: timedelta) -> list[Step]:
    """Drop one old partition that nobody needs any more, and say what was kept."""
    values = {"parent": parent, "keep": keep}
    cursor = await conn.execute(statement("retention/drop_expired_partitions"), values)
    return [Step(*row) for row in await cursor.fetchall()]


async def keep_answers(conn: Connection, keep: timedelta, *, limit: int = BATCH) -> int:
    """Let live idempotency keys know by themselves how their old job ended; how many."""
    return (await conn.execute(statement("retention/keep_answers"), {"keep": keep, "limit": limit})).rowcount


async def delete_expired_ledger(conn: Connection, *, limit: int = BATCH) -> int:
    """Forget idempotency keys whose time is over; how many."""
    return (await conn.execute(statement("retention/delete_expired_ledger"), {"limit": limit})).rowcount


async def delete_gone_workers(conn: Connection, keep: timedelta, *, limit: int = BATCH) -> int:
    """Forget workers that stopped or were lost so long ago; how many."""
    values = {"keep": keep, "limit": limit}
    return (await conn.execute(statement("retention/delete_gone_workers"), values)).rowcount


async def delete_old_minutes(conn: Connection, keep: timedelta, *, limit: int = BATCH) -> int:
    """Forget what queues did in minutes so long ago; how many."""
    values = {"keep": keep, "limit": limit}
    return (await conn.execute(statement("retention/delete_old_minutes"), values)).rowcount


async def delete_expired_sessions(conn: Connection, *, limit: int = BATCH) -> int:
    """Forget log-ins whose time is over; how many."""
    return (await conn.execute(statement("retention/delete_expired_sessions"), {"limit": limit})).rowcount


async def delete_expired_secrets(conn: Connection, *, limit: int = BATCH) -> int:
    """Forget secrets of webhooks that sign no longer; how many."""
    return (await conn.execute(statement("retention/delete_expired_secrets"), {"limit": limit})).rowcount


async def delete_old_notifications(conn: Connection, keep: timedelta, *, limit: int = BATCH) -> int:
    """Forget what people were told so long ago; how many."""
    values = {"keep": keep, "limit": limit}
    return (await conn.execute(statement("retention/delete_old_notifications"), values)).rowcount


async def delete_old_subscriptions(conn: Connection, keep: timedelta, *, limit: int = BATCH) -> int:
    """Forget subscriptions of jobs that ended so long ago; how many."""
    values = {"keep": keep, "limit": limit}
    return (await conn.execute(statement("retention/delete_old_subscriptions"), values)).rowcount


async def delete_old_alerts(conn: Connection, keep: timedelta, *, limit: int = BATCH) -> int:
    """Forget alerts that were over so long ago; how many."""
    values = {"keep": keep, "limit": limit}
    return (await conn.execute(statement("retention/delete_old_alerts"), values)).rowcount


async def delete_orphaned_letters(conn: Connection, keep: timedelta, *, limit: int = BATCH) -> int:
    """Remove the dead letters of jobs that are gone; how many."""
    values = {"keep": keep, "limit": limit}
    return await _counted(conn, "retention/delete_orphaned_letters", values)


async def expire_orphaned_artifacts(conn: Connection, keep: timedelta, *, limit: int = BATCH) -> int:
    """Let the artifacts of jobs that are gone expire; how many."""
    values = {"keep": keep, "limit": limit}
    return (await conn.execute(statement("retention/expire_orphaned_artifacts"), values)).rowcount


async def delete_expired_artifacts(conn: Connection, *, limit: int = BATCH) -> int:
    """Remove expired artifacts and release their blobs; how many."""
    return await _counted(conn, "retention/delete_expired_artifacts", {"limit": limit})


async def released_blobs(conn: Connection, *, limit: int = BATCH) -> list[Blob]:
    """The blobs released first. Those that a row names again are off the list, the others may be removed."""
    cursor = await conn.execute(statement("retention/look_up_blobs"), {"limit": limit})
    return [Blob(*row) for row in await cursor.fetchall()]


async def forget_blobs(conn: Connection, refs: Sequence[str]) -> None:
    """Take blobs off the list that are removed from the store."""
    await conn.execute(statement("retention/forget_blobs"), {"blob_refs": list(refs)})


async def _counted(conn: Connection, name: str, values: dict[str, object]) -> int:
    row = await (await conn.execute(statement(name), values)).fetchone()
    return int(row[0]) if row else 0
