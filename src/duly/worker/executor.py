"""Running: on the loop, on threads or in processes; and stopping what does not stop by itself."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg

from duly.client.job import Job, Place
from duly.model.decide import Hold
from duly.model.error_report import describe
from duly.model.errors import StoreError
from duly.model.outcome import Done, Ending, ErrorInfo, Lost, Retry, Snooze
from duly.model.states import Status
from duly.observe.fields import ids_of
from duly.store.claims import ClaimedJob
from duly.store.work import Key
from duly.store.workers import News
from duly.worker import spans
from duly.worker.attempt import perform
from duly.worker.complete import complete
from duly.worker.finisher import Finisher
from duly.worker.isolate import ProcessPool
from duly.worker.options import WorkerOptions
from duly.worker.run import Run
from duly.worker.steps import Steps
from duly.worker.threads import ThreadPool
from duly.worker.workshop import Workshop
from duly.worker.writer import Ended

log = logging.getLogger("duly.worker")
_PACE = 0.2
_LONGEST_DELAY = timedelta(minutes=1)


class Executor:
    """Every run of this worker, from its start to its ending."""

    def __init__(
        self,
        shop: Workshop,
        options: WorkerOptions,
        finisher: Finisher,
        processes: ProcessPool,
        steps: Steps,
        wake: Callable[[], None],
    ) -> None:
        self._shop = shop
        self._options = options
        self._finisher = finisher
        self._processes = processes
        self._steps = steps
        self._wake = wake
        self._threads = ThreadPool(options.threads)
        self._rooms: dict[Place, int] = {"thread": options.threads, "process": options.isolated}
        self._places: Counter[Place] = Counter()
        self._starting = 0
        self.runs: dict[Key, Run] = {}
        self.ticked_at = time.monotonic()
        """When the loop was last seen alive."""
        self.freed = asyncio.Event()
        """Set whenever a run has ended, or was not begun."""
        self.strays: dict[asyncio.Task[None], Run] = {}
        """Abandoned handlers that still run."""

    @property
    def busy(self) -> int:
        """How many slots are taken."""
        return len(self.runs) + self._starting

    def start_soon(self, jobs: Sequence[ClaimedJob], worker_id: UUID) -> None:
        """Begin to run them when the loop is free next: the database may have its next task before."""

        def start() -> None:
            self._starting -= len(jobs)
            self.start(jobs, worker_id)
            self.freed.set()  # some may have been given back

        self._starting += len(jobs)
        asyncio.get_running_loop().call_soon(start)

    def start(self, jobs: Iterable[ClaimedJob], worker_id: UUID) -> None:
        """Begin to run them."""
        registry = self._shop.app.registry
        for job in jobs:
            if job.job_type not in registry:
                self._leave_to_others(job, worker_id)
                continue
            run = Run.of(job, registry.get(job.job_type), worker_id)
            if self._hoards(run.kind):
                self.give_back([job], worker_id, "no thread or process was free here", _later(job))
                continue
            self.runs[job.key] = run
            self._places[run.kind.place] += 1
            run.task = asyncio.create_task(self._execute(run))

    def _leave_to_others(self, job: ClaimedJob, worker_id: UUID) -> None:
        """A type that only other workers know, as while a new version is rolled out."""
        said = "job %s is given back: no handler for %s here"
        log.warning(said, job.job_id, job.job_type, extra=ids_of(job))
        self.give_back([job], worker_id, f"this worker knows no {job.job_type}", _later(job))

    def give_back(
        self, jobs: Iterable[ClaimedJob], worker_id: UUID, why: str, delay: timedelta = timedelta(0)
    ) -> None:
        """Return jobs that were never started, without spending their attempt."""
        for job in jobs:
            hold = Hold(Status.RUNNING, job.attempt, job.returned)
            self._finisher.put(Ended(job, hold, Snooze(delay, why), worker_id))

    def _hoards(self, kind: Job[..., Any]) -> bool:
        """One may wait behind each that runs; more would keep them from workers that are free."""
        room = self._rooms.get(kind.place)
        return room is not None and self._places[kind.place] >= 2 * room

    async def _execute(self, run: Run) -> None:
        self._steps.announce("started")
        if self._shop.traces is not None:
            spans.begin(run, self._shop.traces)
        try:
            if run.kind.place == "process":
                ending = await self._processes.perform(run)
            else:
                ending = await perform(run, self._shop, self._threads)
        except BaseException as error:
            # No handler's error comes here. Whatever it is, the job must not be held for ever.
            log.exception("job %s could not be run", run.job.job_id, extra=ids_of(run.job))
            ending = run.forced or Retry(describe(error, job_type=run.job.job_type))
        self._end(run, ending)

    def _end(self, run: Run, ending: Ending | None) -> None:
        """From here on nothing stops it any more: the ending is known, and only to be written."""
        if run.closed:
            return
        run.closed = True
        if ending is None or (isinstance(ending, Done) and run.bound is None):
            self._put(run, ending)
        else:
            # In a task of its own: the handler may have left a cancellation behind in that of the run.
            run.task = asyncio.create_task(self._conclude(run, ending))

    async def _conclude(self, run: Run, ending: Ending) -> None:
        left: Ending | None = ending
        try:
            left = await complete(run, ending)
            if left is not None and not isinstance(left, Done):
                await self._shop.keeper.flush(run.job.key)
        except Exception as error:
            usual = isinstance(error, psycopg.Error | StoreError | TimeoutError)
            log.warning("the end of job %s is in doubt: %s", run.job.job_id, error, exc_info=not usual)
            if isinstance(left, Done):
                left = Retry(describe(error, job_type=run.job.job_type))
        finally:
            self._put(run, left)

    def _put(self, run: Run, ending: Ending | None) -> None:
        key = run.job.key
        self._shop.keeper.drop(key)
        if run.log is not None:
            run.log.close()
        failures = tuple(run.failures)
        self._finisher.put(Ended(run.job, run.hold, ending, run.worker_id, run.counts, failures, run.seconds))
        self.runs.pop(key, None)
        if run.span is not None:
            spans.end(run, ending)
        run.task = None  # which knows the run: together they would stay until they are collected
        self._places[run.kind.place] -= 1
        self._steps.announce("ended")
        self.freed.set()
        self._wake()

    def hear(self, news: Iterable[News]) -> None:
        """What the heartbeat brought: cancels and lost leases."""
        for item in news:
            run = self.runs.get(item.key)
            if run is None:
                continue
            if item.lost:
                self.lose(run)
            elif item.cancel is not None:
                run.ask_to_stop(item.cancel)
                self._processes.tell(run)
                self._steps.announce("cancel heard")

    def lose(self, run: Run) -> None:
        """Another attempt has taken over: tell the handler, and stop it."""
        if not run.lost:
            run.lost = True
            self._force(run, Lost("the lease was lost while the handler ran"))

    async def watch(self) -> None:
        """Time-outs, cancels that are not obeyed, handlers that do not stop; until cancelled."""
        while True:
            self.ticked_at = now = time.monotonic()
            for run in list(self.runs.values()):
                if not run.closed:
                    self._look_at(run, now)
            await asyncio.sleep(_PACE)

    def _look_at(self, run: Run, now: float) -> None:
        if run.forced is not None:
            if now > run.forced_at + self._options.stop_grace.total_seconds():
                self._abandon(run)
        elif now > run.deadline:
            self._force(run, _timed_out(run))
        elif run.cancel is not None and run.overdue(now, self._options.cancel_grace):
            self._force(run, run.cancel)

    def _force(self, run: Run, ending: Ending) -> None:
        if run.forced is None and not run.closed and run.task is not None:
            run.forced, run.forced_at = ending, time.monotonic()
            run.task.cancel()

    def _abandon(self, run: Run) -> None:
        """It was cancelled and goes on all the same. Its job ends; what it still writes is refused."""
        log.error("job %s does not stop; its handler is abandoned", run.job.job_id, extra=ids_of(run.job))
        self._steps.announce("abandoned")
        run.abandoned = True
        if run.task is not None:
            self.strays[run.task] = run
            run.task.add_done_callback(lambda task: self.strays.pop(task, None))
        self._end(run, run.forced)

    def is_late(self, run: Run) -> bool:
        """Whether it should have ended by now."""
        now = time.monotonic()
        return not run.closed and (
            now > run.deadline or run.overdue(now, self._options.cancel_grace) or run.lost
        )

    def end_late(self, run: Run) -> None:
        """It is about to be interrupted: this is how it ends."""
        if run.forced is None:
            run.forced = run.cancel or (Lost() if run.lost else _timed_out(run))
            run.forced_at = time.monotonic()

    async def drain(self, patience: timedelta) -> None:
        """Wait for what runs; give back the rest without spending its attempt."""
        for run in self.runs.values():
            run.draining = True
            self._processes.tell(run)
        self._steps.announce("draining")
        try:
            async with asyncio.timeout(patience.total_seconds()):
                await self._until_empty()
        except TimeoutError:
            for run in list(self.runs.values()):
                self._force(run, Snooze(timedelta(0), "the worker was shut down"))
            await self._until_empty()
        self._threads.close()

    async def _until_empty(self) -> None:
        while self.busy:
            self.freed.clear()
            await self.freed.wait()


def _later(job: ClaimedJob) -> timedelta:
    """When to offer it again: others may be free at once, but not if that was tried before."""
    return min(timedelta(seconds=2 ** (min(job.returned, 10) - 2)), _LONGEST_DELAY)


def _timed_out(run: Run) -> Ending:
    said = f"not done after {run.policy.timeout}"
    return Retry(ErrorInfo("run.timeout", said, "TimeoutError"), dependency=run.kind.handling.dependency)
