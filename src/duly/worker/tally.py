"""What a worker counts: claims when they are committed, endings when they are written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from duly.model.decide import Transition, finish
from duly.model.outcome import Done
from duly.observe import metrics, settled
from duly.observe.fairness import Fairness
from duly.observe.settled import Settled
from duly.store.claims import ClaimedJob
from duly.store.session import Database
from duly.store.work import Key
from duly.worker.minutes import Minutes

if TYPE_CHECKING:
    from duly.worker.writer import Ended

_DONE = Done()
_PAUSE = 5.0


class Tally:
    """One process settles thousands of jobs a second: what came together is counted together."""

    def __init__(
        self,
        pools: Mapping[str, Database] | None = None,
        minutes: Minutes | None = None,
        *,
        on: bool = True,
    ) -> None:
        self._pools = pools or {}
        self._minutes = minutes or Minutes(int)
        self._on = on
        self._fairness = Fairness()

    def claimed(self, queue: str, jobs: Sequence[ClaimedJob]) -> None:
        """One claim was committed, and has taken these."""
        if not self._on:
            return
        metrics.claimed(queue, len(jobs))
        self.started(jobs)
        self._fairness.note([job.org_id for job in jobs])

    def started(self, jobs: Sequence[ClaimedJob]) -> None:
        """These are ours."""
        waits: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        for job in jobs if self._on else ():
            waits[job.job_type, job.queue].append(job.waited)
        for kind, waited in waits.items():
            metrics.started(*kind, waited)
            self._minutes.started(kind[1], waited)

    def completed(self, batch: Sequence[Ended], lost: Collection[Key]) -> None:
        """These succeeded plainly, but for those that were lost."""
        if not self._on:
            return
        kinds: defaultdict[tuple[str, str], tuple[list[float], list[int]]] = defaultdict(lambda: ([], []))
        for ended in batch:
            job = ended.job
            if lost and job.key in lost:
                metrics.fenced(job.job_type, job.queue)
                continue
            seconds, attempts = kinds[job.job_type, job.queue]
            if ended.seconds is not None:
                seconds.append(ended.seconds)
            attempts.append(job.attempt - job.returned)
        for kind, (seconds, attempts) in kinds.items():
            settled.completed(*kind, seconds, attempts)
            self._minutes.completed(kind[1], len(attempts), seconds)

    def settled(self, batch: Sequence[Ended], moved: Mapping[Key, Transition]) -> None:
        """These ended so; those that were not moved were lost, but for what had settled itself before."""
        if not self._on:
            return
        endings = []
        for ended in batch:
            job = ended.job
            to = finish(ended.hold, _DONE) if ended.ending is None else moved.get(job.key)
            if to is None:
                metrics.fenced(job.job_type, job.queue)
            else:
                spent = job.attempt - job.returned
                endings.append(Settled(job.job_type, job.queue, to, spent, ended.seconds))
                self._minutes.ended(job.queue, to, ended.seconds)
        settled.count(endings)

    async def look_around(self) -> None:
        """What nobody counts, because it comes and goes: looked at from time to time, until cancelled."""
        while True:
            late = await metrics.late_by(_PAUSE)
            if not self._on:
                continue
            metrics.lagged(late)
            metrics.FAIRNESS.set(self._fairness.index())
            for name, database in self._pools.items():
                metrics.pooled(name, **database.use._asdict())
