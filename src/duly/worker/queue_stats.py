"""Per-minute statistics of queues: workers count in memory and write sums; the dashboard reads them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg

from duly.core.decide import Transition
from duly.core.errors import StoreError
from duly.core.states import Status
from duly.db.database import Database
from duly.db.pool import Connection
from duly.db.rows import rows
from duly.db.statements import statement
from duly.observability.latency_histogram import count_buckets, count_into, quantile


@dataclass(slots=True)
class QueueActivity:
    """The activity of a queue in a period."""

    started: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0
    canceled: int = 0
    run_seconds: float = 0.0
    """Total run time of the handlers."""
    waits: Counter[int] = field(default_factory=Counter)
    """Histogram of the wait times, by bucket."""
    runs: Counter[int] = field(default_factory=Counter)
    """Histogram of the run times, by bucket."""

    def add(self, other: QueueActivity) -> None:
        """Add the activity of another period."""
        for name in ("started", "completed", "failed", "retried", "canceled", "run_seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.waits.update(other.waits)
        self.runs.update(other.runs)

    @property
    def ended(self) -> int:
        """Number of jobs that reached a final status."""
        return self.completed + self.failed + self.canceled

    @property
    def average_run(self) -> timedelta | None:
        """Average run time of a handler."""
        runs = self.runs.total()
        return timedelta(seconds=self.run_seconds / runs) if runs else None

    def wait(self, part: float) -> timedelta | None:
        """Return a quantile of the wait times."""
        return _span(self.waits, part)

    def run(self, part: float) -> timedelta | None:
        """Return a quantile of the run times."""
        return _span(self.runs, part)


@dataclass(frozen=True, slots=True)
class QueueMinute:
    """The activity of one queue in one minute."""

    minute: datetime
    queue: str
    done: QueueActivity


async def write_minutes(
    conn: Connection, recorder_id: UUID, minutes: Iterable[tuple[int, str, QueueActivity]]
) -> None:
    """Write what one process has counted so far: minute since the epoch, queue, activity."""
    document = json.dumps([_as_json(*one) for one in minutes])
    await conn.execute(statement("queue_stats/write"), {"recorder_id": recorder_id, "minutes": document})


async def list_minutes(conn: Connection, since: timedelta) -> list[QueueMinute]:
    """Return the activity of each queue since then, oldest minute first."""
    return [_minute(row) for row in await rows(conn, "queue_stats/list", {"since": since})]


class OrgMinutes(NamedTuple):
    """Ended jobs of one org, minute by minute."""

    minutes: list[QueueMinute]
    since: datetime | None
    """The minutes are complete from here on; None means from the beginning."""


async def list_ended(conn: Connection, org_id: UUID, since: timedelta, *, limit: int) -> OrgMinutes:
    """Return the newest `limit` ended jobs of each status on the org's session; starts are not counted."""
    values = {"org_id": org_id, "since": since, "limit": limit}
    found = await rows(conn, "queue_stats/list_ended", values)
    return OrgMinutes([_of_org(row) for row in found], found[0]["since"] if found else None)


def _of_org(row: dict[str, Any]) -> QueueMinute:
    counts = {name: row[name] for name in ("completed", "failed", "canceled")}
    waits, runs = count_buckets(row["waits"]), count_buckets(row["runs"])
    done = QueueActivity(**counts, run_seconds=sum(row["runs"]), waits=waits, runs=runs)
    return QueueMinute(row["minute"], row["queue"], done)


def _as_json(minute: int, queue: str, done: QueueActivity) -> dict[str, Any]:
    return {
        "minute": minute,
        "queue": queue,
        "started": done.started,
        "completed": done.completed,
        "failed": done.failed,
        "retried": done.retried,
        "canceled": done.canceled,
        "run_seconds": done.run_seconds,
        "wait_buckets": list(done.waits),
        "wait_counts": list(done.waits.values()),
        "run_buckets": list(done.runs),
        "run_counts": list(done.runs.values()),
    }


def _minute(row: dict[str, Any]) -> QueueMinute:
    waits, runs = (
        Counter({int(bucket): n for bucket, n in row.pop(name).items()}) for name in ("waits", "runs")
    )
    return QueueMinute(row.pop("minute"), row.pop("queue"), QueueActivity(**row, waits=waits, runs=runs))


def _span(counts: Counter[int], part: float) -> timedelta | None:
    seconds = quantile(counts, part)
    return None if seconds is None else timedelta(seconds=seconds)


log = logging.getLogger("duly.worker")
_WRITE_INTERVAL = 5.0
_MAX_UNWRITTEN_MINUTES = 60
"""How long unwritten minutes wait for the database to come back."""
_Cell = tuple[int, str]


class QueueStatsRecorder:
    """Counts into the current minute of each queue. It writes sums, so that writing twice does no harm."""

    def __init__(self, minute: Callable[[], int], database: Database | None = None) -> None:
        self._minute = minute
        self._database = database
        self._recorder = uuid4()
        self._cells: dict[_Cell, QueueActivity] = {}
        self._changed: set[_Cell] = set()

    def started(self, queue: str, waits: Collection[float]) -> None:
        """Count claimed jobs and their wait times."""
        cell = self._cell(queue)
        cell.started += len(waits)
        count_into(cell.waits, waits)

    def completed(self, queue: str, n: int, seconds: Collection[float]) -> None:
        """Count `n` completed jobs and the run times of their handlers."""
        cell = self._cell(queue)
        cell.completed += n
        self._add_runs(cell, seconds)

    def ended(self, queue: str, to: Transition, seconds: float | None) -> None:
        """Count an attempt that was settled by its transition."""
        cell = self._cell(queue)
        if to.status is Status.COMPLETED:
            cell.completed += 1
        elif to.status is Status.FAILED:
            cell.failed += 1
        elif to.status is Status.CANCELED:
            cell.canceled += 1
        elif not to.gives_back:
            cell.retried += 1
        self._add_runs(cell, () if seconds is None else (seconds,))

    def _add_runs(self, cell: QueueActivity, seconds: Collection[float]) -> None:
        cell.run_seconds += sum(seconds)
        count_into(cell.runs, seconds)

    def _cell(self, queue: str) -> QueueActivity:
        key = self._minute(), queue
        self._changed.add(key)
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = QueueActivity()
        return cell

    async def run(self) -> None:
        """Write every few seconds until cancelled."""
        while True:
            await asyncio.sleep(_WRITE_INTERVAL)
            await self.write()

    async def write(self) -> None:
        """Write the changed minutes; on a database error they wait for the next time."""
        self._forget()
        if self._database is None or not self._changed:
            return
        changed, self._changed = self._changed, set()
        try:
            async with self._database.engine_autocommit() as conn:
                await write_minutes(
                    conn, self._recorder, [(*key, self._cells[key]) for key in sorted(changed)]
                )
        except (psycopg.Error, StoreError) as error:
            self._changed |= changed
            log.info("could not write queue statistics, retrying: %s", error)
        except BaseException:
            self._changed |= changed
            raise

    def _forget(self) -> None:
        """Drop past minutes that are written, and after a while also those that could not be."""
        now = self._minute()
        for key in [
            key
            for key in self._cells
            if key[0] < now - (_MAX_UNWRITTEN_MINUTES if key in self._changed else 1)
        ]:
            del self._cells[key]
            self._changed.discard(key)
