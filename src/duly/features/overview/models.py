"""The overview of an org or of the installation, and the dashboard that the console shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from uuid import UUID

from duly.core.freshness import FreshnessLabel
from duly.core.states import Status
from duly.db.server import ServerStats
from duly.features.alerts.models import Alert
from duly.features.dead_letters.models import FailureGroup
from duly.features.metrics.service import InstallationTotals
from duly.features.pagination import Count
from duly.features.queues.models import QueueStats, WorkerSnapshot
from duly.worker.queue_stats import QueueActivity

MINUTES = 60
MINUTE = timedelta(minutes=1)
HOUR = MINUTES * MINUTE


@dataclass(frozen=True, slots=True)
class QueueShare:
    """The jobs of an org in a queue that could start now."""

    queue: str
    waiting: Count
    oldest_waiting_at: datetime
    """When the oldest became runnable, of the jobs that are next of their priority."""


@dataclass(frozen=True, slots=True)
class OrgOverview:
    """The jobs of an org. Counts stop at 10,000."""

    org_id: UUID
    looked_at: datetime
    waiting: tuple[QueueShare, ...]
    """Jobs that could start now, by queue; without queues that have none."""
    scheduled: Count
    """Jobs whose time has not come, including retries."""
    running: Count
    partial: Count
    dead_letters: Count
    """Open dead letters."""
    ended: Mapping[Status, Count]
    """Jobs that ended within a day, by status."""
    suspects: Count
    """Likely stale jobs, among claimed jobs and the next queued ones."""
    workers: int
    """Living workers, which work for every org."""
    slots: int
    """The number of jobs that the workers can run at a time."""

    @property
    def oldest_waiting_age(self) -> timedelta | None:
        """The age of the oldest job that could start."""
        since = min((share.oldest_waiting_at for share in self.waiting), default=None)
        return None if since is None else self.looked_at - since


@dataclass(frozen=True, slots=True)
class PlatformOverview:
    """The jobs of the installation. Counts stop at 10,000."""

    looked_at: datetime
    queues: tuple[QueueStats, ...]
    """All queues with their queued, scheduled and running jobs, and dead letters; by weight."""
    orgs: Count
    failed: Count
    """Jobs that failed within a day."""
    canceled: Count
    """Jobs that were canceled within a day."""
    suspects: Count
    """Likely stale jobs, as far as one bounded scan finds them."""
    workers: int
    """Living workers."""
    slots: int
    """The number of jobs that the workers can run at a time."""
    database_bytes: int | None
    """None without the permission to read it."""


@dataclass(frozen=True)
class DashboardQueue:
    """A queue: its jobs, and its activity in the last hour."""

    queue: str
    paused_at: datetime | None
    pause_reason: str | None
    """For operators only."""
    waiting: Count
    scheduled: Count
    running: Count
    oldest_waiting_at: datetime | None
    minutes: tuple[QueueActivity, ...]
    """The last hour, oldest minute first; the last one is not over."""

    @cached_property
    def hour(self) -> QueueActivity:
        """The sum of the minutes."""
        return sum_activity(self.minutes)

    @property
    def idle(self) -> bool:
        """Whether the queue is empty, had no activity and is not paused."""
        jobs = self.waiting.count or self.scheduled.count or self.running.count
        return not (jobs or self.hour.started or self.hour.ended or self.paused_at)


@dataclass(frozen=True, slots=True)
class PlatformDetail:
    """The part of a dashboard that only operators see."""

    workers: tuple[WorkerSnapshot, ...]
    """Workers that have not stopped."""
    server: ServerStats
    totals: InstallationTotals


@dataclass(frozen=True)
class Dashboard:
    """The dashboard of an org or of the installation. Counts stop at 10,000."""

    org_id: UUID | None
    """None: the whole installation."""
    looked_at: datetime
    queues: tuple[DashboardQueue, ...]
    """By weight, without the dead-letter queue."""
    since: datetime
    """The minutes are complete from here on: an hour ago, or later if many jobs ended."""
    waiting: Count
    """Jobs that could start now."""
    scheduled: Count
    running: Count
    failed: Count
    """Jobs that failed within a day."""
    dead_letters: Count
    """Open dead letters."""
    freshness: Mapping[FreshnessLabel, Count]
    """Active jobs by freshness; ended jobs of a day, as far as an index counts them."""
    alerts: tuple[Alert, ...]
    """Open alerts, critical ones first; without dead letters, which are among the failures."""
    failures: tuple[FailureGroup, ...]
    """Open dead letters by fingerprint, latest first."""
    workers: int
    """Living workers, which work for every org."""
    slots: int
    platform: PlatformDetail | None

    @cached_property
    def hour(self) -> QueueActivity:
        """The activity of all queues in the last hour."""
        return sum_activity(queue.hour for queue in self.queues)

    @cached_property
    def minutes(self) -> tuple[QueueActivity, ...]:
        """The activity of all queues, minute by minute."""
        return tuple(sum_activity(queue.minutes[n] for queue in self.queues) for n in range(MINUTES))

    @property
    def average_run(self) -> timedelta | None:
        """The average run time in the last hour."""
        return self.hour.average_run


def sum_activity(activities: Iterable[QueueActivity]) -> QueueActivity:
    """Return the sum of activities."""
    total = QueueActivity()
    for activity in activities:
        total.add(activity)
    return total


def sum_counts(counts: Iterable[Count]) -> Count:
    """Return the sum of counts."""
    parts = list(counts)
    return Count(count=sum(part.count for part in parts), at_least=any(part.at_least for part in parts))
