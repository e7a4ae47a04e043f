"""Maintenance as ordinary jobs: partitions, the ledger, and what is left lying about.

Every run is bounded, and pauses between its batches. What is left over is left to the next run. Each batch
is a transaction of its own, so a run may stop anywhere, and two at once do no harm.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import NamedTuple, TypeVar

import psycopg

from duly.blobs import BadBlobRef, BlobRef, BlobStore
from duly.client.app import App
from duly.model.policy import Category
from duly.model.retention import Retention
from duly.store import retention
from duly.store.pool import Connection
from duly.store.session import Database, retrying

log = logging.getLogger("duly.maintenance")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pace:
    """How much one run does at most, and how fast."""

    batches: int
    per_second: float

    async def rest(self) -> None:
        """Let the others work."""
        await asyncio.sleep(1 / self.per_second)


class Scheduled(NamedTuple):
    """When a maintenance job is due, in UTC."""

    name: str
    cron: str
    job_type: str


MAINTENANCE_SCHEDULES = (
    Scheduled("duly.partitions", "7 * * * *", "duly.partitions"),
    Scheduled("duly.expire_ledger", "*/10 * * * *", "duly.expire_ledger"),
    Scheduled("duly.clean_up", "37 * * * *", "duly.clean_up"),
)
"""To be created for the system org, wherever workers run."""

# Dropping locks a table for a moment; between two of them everybody gets through.
_DROPS = Pace(batches=20, per_second=2)
# Up to a million rows a run.
_ROWS = Pace(batches=2000, per_second=20)
# Blobs of a batch are removed at the same time.
_BLOBS = Pace(batches=400, per_second=20)
_BLOBS_AT_ONCE = 50
_FIGURES = timedelta(days=1)
"""Who wants to know what queues did before has Prometheus."""


def declare(app: App, keep: Retention) -> None:
    """Add the maintenance job types to an application."""

    @app.job("duly.partitions", category=Category.MAINTENANCE)
    async def partitions() -> dict[str, int]:
        return await run_partitions((await app.ground()).database, keep)

    @app.job("duly.expire_ledger", category=Category.MAINTENANCE)
    async def expire_ledger() -> dict[str, int]:
        return await run_expire_ledger((await app.ground()).database)

    @app.job("duly.clean_up", category=Category.MAINTENANCE)
    async def clean_up() -> dict[str, int]:
        ground = await app.ground()
        return await run_clean_up(ground.database, ground.blobs, keep)


async def run_partitions(database: Database, keep: Retention, pace: Pace = _DROPS) -> dict[str, int]:
    """Make the partitions of the time to come, and drop those whose time is over."""
    counts = Counter(made=0, dropped=0, deleted=0, answers=0, kept=0, busy=0)
    counts.update(await _make(database))
    for parent, kept_for in retention.kept_for(keep).items():
        if kept_for is not None:
            counts.update(await _drop(database, parent, kept_for, pace))
    return dict(counts)


async def run_expire_ledger(database: Database, pace: Pace = _ROWS) -> dict[str, int]:
    """Forget idempotency keys whose time is over."""
    return {"deleted": await _repeat(database, retention.delete_expired_ledger, pace)}


async def run_clean_up(
    database: Database, blobs: BlobStore, keep: Retention, pace: Pace = _ROWS
) -> dict[str, int]:
    """Remove what is left: artifacts, blobs, dead letters, notifications, log-ins, figures, workers."""
    await _repeat(database, partial(retention.expire_orphaned_artifacts, keep=keep.jobs), pace)
    return {
        "artifacts": await _repeat(database, retention.delete_expired_artifacts, pace),
        "blobs": await _remove_blobs(database, blobs),
        "dead_letters": await _repeat(
            database, partial(retention.delete_orphaned_letters, keep=keep.jobs), pace
        ),
        "notifications": await _repeat(
            database, partial(retention.delete_old_notifications, keep=keep.notifications), pace
        ),
        "subscriptions": await _repeat(
            database, partial(retention.delete_old_subscriptions, keep=keep.notifications), pace
        ),
        "alerts": await _repeat(database, partial(retention.delete_old_alerts, keep=keep.jobs), pace),
        "secrets": await _repeat(database, retention.delete_expired_secrets, pace),
        "sessions": await _repeat(database, retention.delete_expired_sessions, pace),
        "minutes": await _repeat(database, partial(retention.delete_old_minutes, keep=_FIGURES), pace),
        "workers": await _repeat(
            database, partial(retention.delete_gone_workers, keep=keep.stopped_workers), pace
        ),
    }


async def _make(database: Database) -> Counter[str]:
    try:
        return Counter(made=await _transaction(database, retention.ensure_partitions))
    except psycopg.errors.LockNotAvailable as error:
        log.warning("partitions could not be made yet, somebody holds their table: %s", error)
        return Counter(busy=1)


async def _drop(database: Database, parent: str, keep: timedelta, pace: Pace) -> Counter[str]:
    """Drop the old partitions of one table, one a transaction, until nothing moves."""
    done: Counter[str] = Counter()
    steps: list[retention.Step] = []
    for _ in range(pace.batches):
        steps = await _transaction(
            database, partial(retention.drop_expired_partitions, parent=parent, keep=keep)
        )
        moved = _moved(steps)
        if not moved and steps and parent == "job_records":
            # Live keys may be all that holds the jobs back.
            moved["answers"] = await _transaction(database, partial(retention.keep_answers, keep=keep))
        if not moved.total():
            break
        done.update(moved)
        await pace.rest()
    return done + _stuck(steps)


def _moved(steps: Sequence[retention.Step]) -> Counter[str]:
    dropped = sum(step.outcome == "dropped" for step in steps)
    return +Counter(dropped=dropped, deleted=sum(step.row_count or 0 for step in steps))


def _stuck(steps: Sequence[retention.Step]) -> Counter[str]:
    stuck = [step for step in steps if step.outcome in ("kept", "busy")]
    for step in stuck:
        log.info("%s is still there, %s: %s", step.partition, step.outcome, step.why)
    return Counter(str(step.outcome) for step in stuck)


async def _remove_blobs(database: Database, blobs: BlobStore, pace: Pace = _BLOBS) -> int:
    """The blob first, then its row: what is interrupted is done again."""
    removed = 0
    for _ in range(pace.batches):
        found = await _transaction(database, partial(retention.released_blobs, limit=_BLOBS_AT_ONCE))
        unnamed = [blob.ref for blob in found if not blob.named]
        await asyncio.gather(*(_remove(blobs, ref) for ref in unnamed))
        await _transaction(database, partial(retention.forget_blobs, refs=unnamed))
        removed += len(unnamed)
        if len(found) < _BLOBS_AT_ONCE:
            break
        await pace.rest()
    return removed


async def _remove(blobs: BlobStore, text: str) -> None:
    try:
        ref = BlobRef.parse(text)
    except BadBlobRef:
        return  # a caller made it up
    await blobs.delete(ref, org_id=ref.org_id)


async def _repeat(database: Database, batch: Callable[[Connection], Awaitable[int]], pace: Pace) -> int:
    """Batch after batch, until one is not full or the run is over."""
    total = 0
    for _ in range(pace.batches):
        done = await _transaction(database, batch)
        total += done
        if done < retention.BATCH:
            break
        await pace.rest()
    return total


async def _transaction(database: Database, work: Callable[[Connection], Awaitable[T]]) -> T:
    async def once() -> T:
        async with database.engine_session() as conn:
            return await work(conn)

    return await retrying(once)
