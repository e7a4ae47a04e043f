"""Retention: jobs that create and drop partitions, and delete expired keys, rows and blobs.

Every run is bounded, pauses between its batches, and leaves the rest to the next run. Each batch is a
transaction of its own, so a run may stop anywhere, and two at once do no harm.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Literal, NamedTuple, TypeVar

import psycopg

from duly.blobs import BadBlobRef, BlobRef, BlobStore
from duly.core.policy import Category, Retention
from duly.db.database import Database, retry_transaction
from duly.db.pool import Connection
from duly.db.statements import statement
from duly.jobs.application import App

log = logging.getLogger("duly.maintenance")
T = TypeVar("T")
MAX_ROWS_PER_BATCH = 500
"""Maximum number of rows that one statement deletes or changes."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How much one run does at most, and how fast."""

    batches: int
    per_second: float

    async def rest(self) -> None:
        """Pause, so that other transactions get through."""
        await asyncio.sleep(1 / self.per_second)


class MaintenanceSchedule(NamedTuple):
    """When a maintenance job is due, in UTC."""

    name: str
    cron: str
    job_type: str


MAINTENANCE_SCHEDULES = (
    MaintenanceSchedule("duly.partitions", "7 * * * *", "duly.partitions"),
    MaintenanceSchedule("duly.expire_ledger", "*/10 * * * *", "duly.expire_ledger"),
    MaintenanceSchedule("duly.clean_up", "37 * * * *", "duly.clean_up"),
)
"""To be created for the system org, wherever workers run."""

# Dropping locks a table for a moment; between two drops other transactions get through.
_DROPS = Pace(batches=20, per_second=2)
# Up to a million rows a run.
_ROWS = Pace(batches=2000, per_second=20)
# The blobs of a batch are removed concurrently.
_BLOBS = Pace(batches=400, per_second=20)
_BLOBS_PER_BATCH = 50
_QUEUE_STATS_RETENTION = timedelta(days=1)
"""Older statistics of queues are in Prometheus."""


def declare(app: App, keep: Retention) -> None:
    """Add the maintenance job types to an application."""

    @app.job("duly.partitions", category=Category.MAINTENANCE)
    async def partitions() -> dict[str, int]:
        return await run_partitions((await app.resources()).database, keep)

    @app.job("duly.expire_ledger", category=Category.MAINTENANCE)
    async def expire_ledger() -> dict[str, int]:
        return await run_expire_ledger((await app.resources()).database)

    @app.job("duly.clean_up", category=Category.MAINTENANCE)
    async def clean_up() -> dict[str, int]:
        resources = await app.resources()
        return await run_clean_up(resources.database, resources.blobs, keep)


async def run_partitions(database: Database, keep: Retention, pace: Pace = _DROPS) -> dict[str, int]:
    """Create the coming partitions and drop the expired ones."""
    counts = Counter(made=0, dropped=0, deleted=0, answers=0, kept=0, busy=0)
    counts.update(await _create_partitions(database))
    for parent, retained in retention_by_table(keep).items():
        if retained is not None:
            counts.update(await _drop_partitions(database, parent, retained, pace))
    return dict(counts)


async def run_expire_ledger(database: Database, pace: Pace = _ROWS) -> dict[str, int]:
    """Delete expired idempotency keys."""
    return {"deleted": await _repeat(database, pace, "delete_expired_ledger")}


async def run_clean_up(
    database: Database, blobs: BlobStore, keep: Retention, pace: Pace = _ROWS
) -> dict[str, int]:
    """Delete expired artifacts, blobs, dead letters, notifications, alerts, sessions, statistics, workers."""
    delete = partial(_repeat, database, pace)
    await delete("expire_orphaned_artifacts", keep.jobs)
    return {
        "artifacts": await delete("delete_expired_artifacts"),
        "blobs": await _remove_blobs(database, blobs),
        "dead_letters": await delete("delete_orphaned_dead_letters", keep.jobs),
        "notifications": await delete("delete_old_notifications", keep.notifications),
        "subscriptions": await delete("delete_old_subscriptions", keep.notifications),
        "alerts": await delete("delete_old_alerts", keep.jobs),
        "secrets": await delete("delete_expired_secrets"),
        "sessions": await delete("delete_expired_sessions"),
        "minutes": await delete("delete_old_queue_stats", _QUEUE_STATS_RETENTION),
        "workers": await delete("delete_gone_workers", keep.stopped_workers),
    }


async def _create_partitions(database: Database) -> Counter[str]:
    try:
        return Counter(made=await _transaction(database, ensure_partitions))
    except psycopg.errors.LockNotAvailable as error:
        log.warning("could not create partitions, their table is locked: %s", error)
        return Counter(busy=1)


async def _drop_partitions(database: Database, parent: str, keep: timedelta, pace: Pace) -> Counter[str]:
    """Drop the expired partitions of one table, one per transaction, until nothing changes."""
    counts: Counter[str] = Counter()
    results: list[PartitionResult] = []
    for _ in range(pace.batches):
        results = await _transaction(database, partial(drop_expired_partitions, parent=parent, keep=keep))
        changed = _changed(results)
        if not changed and results and parent == "job_records":
            # Live idempotency keys may be all that holds the jobs back.
            changed["answers"] = await _transaction(
                database, partial(run_batch, verb="store_key_answers", keep=keep)
            )
        if not changed.total():
            break
        counts.update(changed)
        await pace.rest()
    return counts + _remaining(results)


def _changed(results: Sequence[PartitionResult]) -> Counter[str]:
    dropped = sum(result.outcome == "dropped" for result in results)
    return +Counter(dropped=dropped, deleted=sum(result.row_count or 0 for result in results))


def _remaining(results: Sequence[PartitionResult]) -> Counter[str]:
    remaining = [result for result in results if result.outcome in ("kept", "busy")]
    for result in remaining:
        log.info("partition %s is not dropped, %s: %s", result.partition, result.outcome, result.why)
    return Counter(str(result.outcome) for result in remaining)


async def _remove_blobs(database: Database, blobs: BlobStore, pace: Pace = _BLOBS) -> int:
    """Remove released blobs: the blob first, then its row, so that an interrupted removal is repeated."""
    removed = 0
    for _ in range(pace.batches):
        released = await _transaction(database, partial(list_released_blobs, limit=_BLOBS_PER_BATCH))
        unnamed = [blob.ref for blob in released if not blob.named]
        await asyncio.gather(*(_remove_blob(blobs, ref) for ref in unnamed))
        await _transaction(database, partial(delete_released_blobs, refs=unnamed))
        removed += len(unnamed)
        if len(released) < _BLOBS_PER_BATCH:
            break
        await pace.rest()
    return removed


async def _remove_blob(blobs: BlobStore, text: str) -> None:
    try:
        ref = BlobRef.parse(text)
    except BadBlobRef:
        return  # a caller made it up
    await blobs.delete(ref, org_id=ref.org_id)


async def _repeat(database: Database, pace: Pace, verb: str, keep: timedelta | None = None) -> int:
    """Run batches until one is not full or the run has reached its limit; return the number of rows."""
    total = 0
    for _ in range(pace.batches):
        count = await _transaction(database, partial(run_batch, verb=verb, keep=keep))
        total += count
        if count < MAX_ROWS_PER_BATCH:
            break
        await pace.rest()
    return total


async def _transaction(database: Database, work: Callable[[Connection], Awaitable[T]]) -> T:
    async def once() -> T:
        async with database.engine() as conn:
            return await work(conn)

    return await retry_transaction(once)


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
        "job_ends": keep.jobs,
        # Lists of completed jobs read it, too.
        "event_batches": keep.jobs,
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


async def run_batch(
    conn: Connection, verb: str, keep: timedelta | None = None, limit: int = MAX_ROWS_PER_BATCH
) -> int:
    """Run a statement that deletes or expires at most `limit` rows; return how many it was."""
    cursor = await conn.execute(statement(f"retention/{verb}"), {"keep": keep, "limit": limit})
    if cursor.description is None:
        return cursor.rowcount
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def list_released_blobs(conn: Connection, *, limit: int = MAX_ROWS_PER_BATCH) -> list[ReleasedBlob]:
    """Return the oldest released blobs. Those that a row references again are off the list now."""
    cursor = await conn.execute(statement("retention/list_released_blobs"), {"limit": limit})
    return [ReleasedBlob(*row) for row in await cursor.fetchall()]


async def delete_released_blobs(conn: Connection, refs: Sequence[str]) -> None:
    """Delete the rows of blobs that were removed from the store."""
    await conn.execute(statement("retention/delete_released_blobs"), {"blob_refs": list(refs)})
