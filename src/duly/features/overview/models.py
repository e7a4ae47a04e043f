"""Everything that an overview shows, of an org or of the installation, at one look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from duly.core.freshness import FreshnessLabel
from duly.db.server import ServerStats
from duly.features.alerts.models import Alert, Severity
from duly.features.dead_letters.models import FailureGroup
from duly.features.metrics.store import Totals
from duly.features.pagination import Count
from duly.features.queues.models import WorkerSnapshot, WorkerState
from duly.worker.queue_stats import QueueActivity, QueueMinute

__all__ = [
    "HOUR",
    "MINUTE",
    "MINUTES",
    "Alert",
    "Board",
    "Platform",
    "QueueActivity",
    "QueueLine",
    "WorkerState",
    "all_of",
    "by_queue",
    "together",
    "worst_first",
]  # fmt: skip
MINUTES = 60
MINUTE = timedelta(minutes=1)
HOUR = MINUTES * MINUTE
_NOTHING = QueueActivity()


@dataclass(frozen=True, slots=True)
class QueueLine:
    """A queue: what is in it, and what it did in the last hour."""

    queue: str
    paused_at: datetime | None
    pause_reason: str | None
    """Told to those who look after the installation."""
    waiting: Count
    scheduled: Count
    running: Count
    oldest_waiting_at: datetime | None
    oldest_waiting_age: timedelta | None
    minutes: tuple[QueueActivity, ...]
    """The last hour, the oldest minute first; the last one is not over."""
    hour: QueueActivity
    """All of them together."""

    @property
    def idle(self) -> bool:
        """Whether nothing is in it, and nothing was done."""
        some = self.waiting.count or self.scheduled.count or self.running.count
        return not (some or self.hour.started or self.hour.ended or self.paused_at)


@dataclass(frozen=True, slots=True)
class Platform:
    """What only those who look after the installation see."""

    workers: tuple[WorkerSnapshot, ...]
    """Those that have not said goodbye."""
    server: ServerStats
    beside: Totals
    """How late events are passed on and entries are sealed; what is still to be told."""


@dataclass(frozen=True, slots=True)
class Board:
    """What there is to see. No count goes further than 10,000."""

    org_id: UUID | None
    """None: of the whole installation."""
    looked_at: datetime
    queues: tuple[QueueLine, ...]
    """Without dead letters; the weightiest first."""
    since: datetime
    """From when on the figures of the minutes are complete: an hour ago, or later if much has ended."""
    waiting: Count
    """Jobs that could start now."""
    scheduled: Count
    running: Count
    failed: Count
    """Within a day."""
    dead_letters: Count
    """Those that are open."""
    bands: Mapping[FreshnessLabel, Count]
    """Active jobs by whether they can be believed; ended ones of a day, as far as an index counts them."""
    alerts: tuple[Alert, ...]
    """The open ones, the worst first; dead letters are among the kinds of errors."""
    kinds: tuple[FailureGroup, ...]
    """The open dead letters by what went wrong, the latest first."""
    workers: int
    """Living ones, which work for every org."""
    slots: int
    platform: Platform | None

    @property
    def hour(self) -> QueueActivity:
        """All queues together."""
        return together(line.hour for line in self.queues)

    @property
    def minutes(self) -> tuple[QueueActivity, ...]:
        """The same minute by minute."""
        return tuple(together(line.minutes[n] for line in self.queues) for n in range(MINUTES))

    @property
    def average_run(self) -> timedelta | None:
        """How long a handler ran on average in the last hour."""
        return self.hour.average_run

    @property
    def oldest_waiting_age(self) -> timedelta | None:
        """How long the oldest job has waited that could start."""
        ages = (line.oldest_waiting_age for line in self.queues if not line.paused_at)
        return max((age for age in ages if age is not None), default=None)


def together(some: Iterable[QueueActivity]) -> QueueActivity:
    """The sum."""
    total = QueueActivity()
    for one in some:
        total.add(one)
    return total


def by_queue(minutes: Iterable[QueueMinute], now: datetime) -> dict[str, tuple[QueueActivity, ...]]:
    """What each queue did in each of the last 60 minutes, the present one last."""
    last = now.replace(second=0, microsecond=0)
    found: dict[str, list[QueueActivity]] = {}
    for one in minutes:
        place = MINUTES - 1 - (last - one.minute) // MINUTE
        if 0 <= place < MINUTES:
            found.setdefault(one.queue, [_NOTHING] * MINUTES)[place] = one.done
    return {queue: tuple(done) for queue, done in found.items()}


def worst_first(alerts: Iterable[Alert]) -> tuple[Alert, ...]:
    """The critical ones before the others, and of each the latest first."""
    return tuple(
        sorted(alerts, key=lambda one: (one.severity is not Severity.CRITICAL, -one.fired_at.timestamp()))
    )


def all_of(counts: Iterable[Count]) -> Count:
    """The sum of some counts."""
    some = list(counts)
    return Count(count=sum(one.count for one in some), at_least=any(one.at_least for one in some))
