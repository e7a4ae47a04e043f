"""The metrics of a worker: claims when they are committed, endings when they are written."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from duly.core.decide import Transition, finish
from duly.core.outcome import DONE
from duly.db.database import Database
from duly.observability import metrics
from duly.observability.metrics import SettledAttempt
from duly.worker.queue_stats import QueueStatsRecorder

if TYPE_CHECKING:
    from duly.worker.claim import ClaimedJob
    from duly.worker.settle_store import Key
    from duly.worker.settle_writer import FinishedAttempt

T = TypeVar("T")
Kind = tuple[str, str]
_KIND_OF_JOB = attrgetter("job_type", "queue")
_KIND_OF_ENDED = attrgetter("job.job_type", "job.queue")
_SAMPLE_INTERVAL = 5.0
_WINDOW_SECONDS = 30.0


def _by_kind(items: Iterable[T], kind_of: Callable[[T], Kind]) -> Collection[tuple[Kind, list[T]]]:
    """Group by job type and queue; neighbours are mostly of one kind."""
    kinds: defaultdict[Kind, list[T]] = defaultdict(list)
    for kind, neighbours in groupby(items, kind_of):
        kinds[kind].extend(neighbours)
    return kinds.items()


def jain_index(shares: Iterable[int]) -> float:
    """Return Jain's fairness index: 1 if all shares are equal or none, 1/n if one of n has everything."""
    positive = [share for share in shares if share]
    squares = sum(share * share for share in positive)
    return sum(positive) ** 2 / (len(positive) * squares) if squares else 1.0


class Fairness:
    """Claims of the last half minute to minute by org, as one number: no label may name an org."""

    def __init__(self) -> None:
        self._previous: Counter[Hashable] = Counter()
        self._current: Counter[Hashable] = Counter()
        self._since = time.monotonic()

    def add(self, orgs: Iterable[Hashable]) -> None:
        """Count the orgs of claimed jobs."""
        self._rotate()
        self._current.update(orgs)

    def index(self) -> float:
        """Return how evenly the orgs were served."""
        self._rotate()
        return jain_index((self._previous + self._current).values())

    def _rotate(self) -> None:
        age = time.monotonic() - self._since
        if age >= _WINDOW_SECONDS:
            self._previous = self._current if age < 2 * _WINDOW_SECONDS else Counter()
            self._current, self._since = Counter(), time.monotonic()


class WorkerMetrics:
    """Counts in batches, because one process settles thousands of jobs a second."""

    def __init__(
        self,
        pools: Mapping[str, Database] | None = None,
        queue_stats: QueueStatsRecorder | None = None,
        *,
        on: bool = True,
    ) -> None:
        self._pools = pools or {}
        self._queue_stats = queue_stats or QueueStatsRecorder(int)
        self._on = on
        self._fairness = Fairness()

    def claimed(self, queue: str, jobs: Sequence[ClaimedJob]) -> None:
        """Count one committed claim and its jobs."""
        if not self._on:
            return
        metrics.observe_claim(queue, len(jobs))
        self.started(jobs)
        self._fairness.add([job.org_id for job in jobs])

    def started(self, jobs: Sequence[ClaimedJob]) -> None:
        """Count jobs that this worker holds now, and how long they waited."""
        for kind, of_kind in _by_kind(jobs if self._on else (), _KIND_OF_JOB):
            waits = [job.waited for job in of_kind]
            metrics.count_started(*kind, waits)
            self._queue_stats.started(kind[1], waits)

    def completed(self, batch: Sequence[FinishedAttempt], lost: Collection[Key]) -> None:
        """Count plain successes, and the lost attempts among them as fenced."""
        if not self._on:
            return
        for finished in batch if lost else ():
            if finished.job.key in lost:
                metrics.count_fenced(finished.job.job_type, finished.job.queue)
        won = [end for end in batch if end.job.key not in lost] if lost else batch
        for kind, ended in _by_kind(won, _KIND_OF_ENDED):
            # Each histogram sorts them, which is quick if they are sorted.
            seconds = sorted([end.seconds for end in ended if end.seconds is not None])
            attempts = [end.job.attempt - end.job.returned for end in ended]
            metrics.count_completed(*kind, seconds, attempts)
            self._queue_stats.completed(kind[1], len(ended), seconds)

    def settled(self, batch: Sequence[FinishedAttempt], moved: Mapping[Key, Transition]) -> None:
        """Count endings; an attempt that was not moved is fenced, unless its own transaction settled it."""
        if not self._on:
            return
        endings = []
        for finished in batch:
            job = finished.job
            to = finish(finished.hold, DONE) if finished.ending is None else moved.get(job.key)
            if to is None:
                metrics.count_fenced(job.job_type, job.queue)
            else:
                spent = job.attempt - job.returned
                endings.append(SettledAttempt(job.job_type, job.queue, to, spent, finished.seconds))
                self._queue_stats.ended(job.queue, to, finished.seconds)
        metrics.count_settled(endings)

    async def sample(self) -> None:
        """Sample loop lag, fairness and pool usage until cancelled."""
        while True:
            late = await metrics.measure_lag(_SAMPLE_INTERVAL)
            if not self._on:
                continue
            metrics.set_loop_lag(late)
            metrics.FAIRNESS.set(self._fairness.index())
            for name, database in self._pools.items():
                metrics.set_pool_usage(name, **database.usage._asdict())
