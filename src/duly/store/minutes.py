"""What queues did, minute by minute: written by whoever works, read by whoever looks on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from duly.model.spread import quantile, spread
from duly.store.pool import Connection
from duly.store.rows import rows
from duly.store.statements import statement


@dataclass(slots=True)
class Done:
    """What was done of a queue in some time."""

    started: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0
    canceled: int = 0
    run_seconds: float = 0.0
    """How long handlers ran, all together."""
    waits: Counter[int] = field(default_factory=Counter)
    """How long jobs waited, by bucket."""
    runs: Counter[int] = field(default_factory=Counter)
    """How long handlers ran, by bucket."""

    def add(self, other: Done) -> None:
        """Both together."""
        for name in ("started", "completed", "failed", "retried", "canceled", "run_seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.waits.update(other.waits)
        self.runs.update(other.runs)

    @property
    def ended(self) -> int:
        """Jobs that were over, however they ended."""
        return self.completed + self.failed + self.canceled

    @property
    def average_run(self) -> timedelta | None:
        """How long a handler ran on average."""
        runs = self.runs.total()
        return timedelta(seconds=self.run_seconds / runs) if runs else None

    def wait(self, part: float) -> timedelta | None:
        """How long this part of the jobs waited at most."""
        return _span(self.waits, part)

    def run(self, part: float) -> timedelta | None:
        """How long this part of the handlers ran at most."""
        return _span(self.runs, part)


@dataclass(frozen=True, slots=True)
class Minute:
    """What was done of one queue in one minute."""

    minute: datetime
    queue: str
    done: Done


async def write(conn: Connection, recorder_id: UUID, minutes: Iterable[tuple[int, str, Done]]) -> None:
    """Write what one process has counted so far of these minutes since the epoch, and queues."""
    written = json.dumps([_as_json(*one) for one in minutes])
    await conn.execute(statement("minutes/write"), {"recorder_id": recorder_id, "minutes": written})


async def latest(conn: Connection, since: timedelta) -> list[Minute]:
    """What each queue did in the last minutes; the oldest first."""
    return [_minute(row) for row in await rows(conn, "minutes/list", {"since": since})]


class Ended(NamedTuple):
    """What ended of an org, minute by minute."""

    minutes: list[Minute]
    since: datetime | None
    """From when on that is all there is; None: from the beginning."""


async def ended(conn: Connection, org_id: UUID, since: timedelta, *, limit: int) -> Ended:
    """What ended of an org, on its session: the newest `limit` of each status. What began is not known."""
    values = {"org_id": org_id, "since": since, "limit": limit}
    found = await rows(conn, "overview/ended", values)
    return Ended([_of_org(row) for row in found], found[0]["since"] if found else None)


def _of_org(row: dict[str, Any]) -> Minute:
    counts = {name: row[name] for name in ("completed", "failed", "canceled")}
    waits, runs = spread(row["waits"]), spread(row["runs"])
    done = Done(**counts, run_seconds=sum(row["runs"]), waits=waits, runs=runs)
    return Minute(row["minute"], row["queue"], done)


def _as_json(minute: int, queue: str, done: Done) -> dict[str, Any]:
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


def _minute(row: dict[str, Any]) -> Minute:
    waits, runs = (
        Counter({int(bucket): n for bucket, n in row.pop(name).items()}) for name in ("waits", "runs")
    )
    return Minute(row.pop("minute"), row.pop("queue"), Done(**row, waits=waits, runs=runs))


def _span(counts: Counter[int], part: float) -> timedelta | None:
    seconds = quantile(counts, part)
    return None if seconds is None else timedelta(seconds=seconds)
