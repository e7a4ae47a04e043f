"""Execute claimed jobs on the loop, on threads or in processes; stop those that do not end in time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import Context, copy_context
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg

from duly.core.decide import JobState
from duly.core.error_report import describe_error
from duly.core.errors import StoreError
from duly.core.outcome import AttemptOutcome, Completed, ErrorInfo, Lost, Retried, Snoozed
from duly.core.states import Status
from duly.jobs.job import ExecutionMode, Job
from duly.observability.logs import ids_of
from duly.worker.claim import ClaimedJob
from duly.worker.context.run import JobRun, begin_span, end_span
from duly.worker.context.services import HandlerServices
from duly.worker.context.transaction import complete_bound
from duly.worker.handler import run_handler
from duly.worker.isolation.pool import ProcessPool
from duly.worker.isolation.threads import ThreadPool
from duly.worker.loop_events import LoopEvents
from duly.worker.options import WorkerOptions
from duly.worker.settle import Settler
from duly.worker.settle_writer import FinishedAttempt
from duly.worker.workers_store import HeldJobUpdate

log = logging.getLogger("duly.worker")
_DEADLINE_CHECK_INTERVAL = 0.2
_MAX_RETURN_DELAY = timedelta(minutes=1)
_MAX_TURN_SECONDS = 0.05


class Executor:
    """Every run of this worker, from its start to its ending."""

    def __init__(
        self,
        services: HandlerServices,
        options: WorkerOptions,
        settler: Settler,
        processes: ProcessPool,
        events: LoopEvents,
        wake: Callable[[], None],
    ) -> None:
        self._services = services
        self._options = options
        self._settler = settler
        self._processes = processes
        self._events = events
        self._wake = wake
        self._threads = ThreadPool(options.threads)
        self._capacity: dict[ExecutionMode, int] = {"thread": options.threads, "process": options.isolated}
        self._load: Counter[ExecutionMode] = Counter()
        self._starting = 0
        self._waiting: deque[JobRun] = deque()
        """Runs that no task has taken yet."""
        self._turn = 0
        self._carrier: asyncio.Task[None] | None = None
        """The newest task, so that it is referred to until it takes a run."""
        self.runs: set[JobRun] = set()
        self.ticked_at = time.monotonic()
        """When the event loop last checked the deadlines."""
        self.freed = asyncio.Event()
        """Set whenever a run has ended or a job was given back."""
        self.abandoned: dict[asyncio.Task[None], JobRun] = {}
        """Abandoned handlers that still run."""

    @property
    def busy(self) -> int:
        """Number of slots in use."""
        return len(self.runs) + self._starting

    def start_soon(self, jobs: Sequence[ClaimedJob], worker_id: UUID) -> None:
        """Start the jobs in the next loop iteration, so that the next claim can be sent first."""

        def start() -> None:
            self._starting -= len(jobs)
            self.start(jobs, worker_id)
            self.freed.set()  # some may have been given back

        self._starting += len(jobs)
        asyncio.get_running_loop().call_soon(start)

    def start(self, jobs: Iterable[ClaimedJob], worker_id: UUID) -> None:
        """Start the jobs; give back those that cannot run here."""
        registry = self._services.app.registry
        for job in jobs:
            if job.job_type not in registry:
                # As during a rollout: only newer workers know the type.
                log.warning(
                    "gave back job %s: no handler for %s", job.job_id, job.job_type, extra=ids_of(job)
                )
                reason = f"this worker has no handler for {job.job_type}"
                self.give_back([job], worker_id, reason, _return_delay(job))
                continue
            run = JobRun(job, registry.get(job.job_type), worker_id)
            if self._is_full(run.kind):
                reason = "no thread or process was free on this worker"
                self.give_back([job], worker_id, reason, _return_delay(job))
                continue
            self.runs.add(run)
            self._load[run.kind.execution_mode] += 1
            self._waiting.append(run)
        self._take_waiting()

    def give_back(
        self, jobs: Iterable[ClaimedJob], worker_id: UUID, reason: str, delay: timedelta = timedelta(0)
    ) -> None:
        """Return jobs that were never started, without spending their attempt."""
        for job in jobs:
            hold = JobState(Status.RUNNING, job.attempt, job.returned)
            self._settler.put(FinishedAttempt(job, hold, Snoozed(delay, reason), worker_id))

    def _is_full(self, kind: Job[..., Any]) -> bool:
        """One job may wait behind each running one; more would be withheld from workers that are free."""
        capacity = self._capacity.get(kind.execution_mode)
        return capacity is not None and self._load[kind.execution_mode] >= 2 * capacity

    def _take_waiting(self) -> None:
        """Begin a turn of the loop with a task for the waiting runs."""
        self._turn += 1
        # In an empty context: a run inherits no variable of the claimer or of another run.
        self._carrier = asyncio.create_task(self._carry(), context=Context()) if self._waiting else None

    async def _carry(self) -> None:
        """Execute runs one after another as long as they end at once; a task for each costs 6 us more.

        A run that suspends keeps the task to itself, and so does one that leaves a cancellation or a changed
        context variable behind. The next task, in the next turn, takes the other runs.
        """
        task, turn, until = asyncio.current_task(), self._turn, time.monotonic() + _MAX_TURN_SECONDS
        assert task is not None
        asyncio.get_running_loop().call_soon(self._take_waiting)
        while self._waiting:
            run = self._waiting.popleft()
            run.task = task
            ending = run.forced
            try:
                if ending is None:
                    ending = await self._execute(run)
            except BaseException as error:
                # No handler's error comes here. Whatever it is, the job must not be held for ever.
                log.exception("could not run job %s", run.job.job_id, extra=ids_of(run.job))
                ending = run.forced or Retried(describe_error(error, job_type=run.job.job_type))
            self._finish(run, ending)
            # The only variable that a run sets by itself is replaced by the next one.
            if self._turn != turn or task.cancelling() or len(copy_context()) > 1 or time.monotonic() > until:
                return

    def _execute(self, run: JobRun) -> Awaitable[AttemptOutcome | None]:
        """Begin to execute a run; its ending is awaited."""
        self._events.record("started")
        if self._services.traces is not None:
            begin_span(run, self._services.traces)
        if run.kind.execution_mode == "process":
            return self._processes.run(run)
        return run_handler(run, self._services, self._threads)

    def _finish(self, run: JobRun, ending: AttemptOutcome | None) -> None:
        """Close the run. From here on the ending is decided, and only has to be written."""
        if run.closed:
            return
        run.closed = True
        if ending is None or (isinstance(ending, Completed) and run.bound is None):
            self._hand_over(run, ending)
        else:
            # In a task of its own: the handler may have left a cancellation behind in that of the run.
            run.task = asyncio.create_task(self._conclude(run, ending))

    async def _conclude(self, run: JobRun, ending: AttemptOutcome) -> None:
        """Complete or roll back the handler's transaction, write its last progress, then settle."""
        remaining: AttemptOutcome | None = ending
        try:
            remaining = await complete_bound(run, ending)
            if remaining is not None and not isinstance(remaining, Completed):
                await self._services.progress.flush(run.job.key)
        except Exception as error:
            usual = isinstance(error, psycopg.Error | StoreError | TimeoutError)
            log.warning("the end of job %s is in doubt: %s", run.job.job_id, error, exc_info=not usual)
            if isinstance(remaining, Completed):
                remaining = Retried(describe_error(error, job_type=run.job.job_type))
        finally:
            self._hand_over(run, remaining)

    def _hand_over(self, run: JobRun, ending: AttemptOutcome | None) -> None:
        """Give the finished attempt to the settler and free its slot."""
        self._services.progress.drop(run.job)
        if run.log is not None:
            run.log.close()
        self._settler.put(
            FinishedAttempt(run.job, run.hold, ending, run.worker_id, run.counts, run.failures, run.seconds)
        )
        self.runs.discard(run)
        if run.span is not None:
            end_span(run, ending)
        run.task = None  # breaks a reference cycle: the task's frame refers to the run
        self._load[run.kind.execution_mode] -= 1
        self._events.record("ended")
        self.freed.set()
        self._wake()

    def apply_updates(self, updates: Iterable[HeldJobUpdate]) -> None:
        """Apply what the heartbeat brought: cancel requests and lost leases."""
        held = {run.job.key: run for run in self.runs}
        for update in updates:
            run = held.get(update.key)
            if run is None:
                continue
            if update.lost:
                self.lose(run)
            elif update.cancel is not None:
                run.request_cancel(update.cancel)
                self._processes.update(run)
                self._events.record("cancel requested")

    def lose(self, run: JobRun) -> None:
        """Stop a run whose lease was lost to another attempt."""
        if not run.lost:
            run.lost = True
            self._force(run, Lost("the lease was lost while the handler ran"))

    async def watch(self) -> None:
        """Enforce time-outs, cancels and stop graces until cancelled."""
        while True:
            self.ticked_at = now = time.monotonic()
            for run in list(self.runs):
                if not run.closed:
                    self._enforce(run, now)
            await asyncio.sleep(_DEADLINE_CHECK_INTERVAL)

    def _enforce(self, run: JobRun, now: float) -> None:
        if run.forced is not None:
            if now > run.forced_at + self._options.stop_grace.total_seconds():
                self._abandon(run)
        elif now > run.deadline:
            self._force(run, _timed_out(run))
        elif run.cancel is not None and run.overdue(now, self._options.cancel_grace):
            self._force(run, run.cancel)

    def _force(self, run: JobRun, ending: AttemptOutcome) -> None:
        if run.forced is None and not run.closed:
            run.forced, run.forced_at = ending, time.monotonic()
            if run.task is not None:
                run.task.cancel()

    def _abandon(self, run: JobRun) -> None:
        """End the job of a handler that ignored its cancellation; its later writes are refused."""
        log.error("job %s did not stop; abandoned its handler", run.job.job_id, extra=ids_of(run.job))
        self._events.record("abandoned")
        run.abandoned = True
        if run.task is not None:
            self.abandoned[run.task] = run
            run.task.add_done_callback(lambda task: self.abandoned.pop(task, None))
        self._finish(run, run.forced)

    def is_late(self, run: JobRun) -> bool:
        """Whether the run should have ended by now."""
        now = time.monotonic()
        return not run.closed and (
            now > run.deadline or run.overdue(now, self._options.cancel_grace) or run.lost
        )

    def force_late(self, run: JobRun) -> None:
        """Set the ending of a late run that the watchdog is about to interrupt."""
        if run.forced is None:
            run.forced = run.cancel or (Lost() if run.lost else _timed_out(run))
            run.forced_at = time.monotonic()

    async def drain(self, timeout: timedelta) -> None:
        """Wait for the running jobs; after the time-out give them back without spending their attempt."""
        for run in self.runs:
            run.draining = True
            self._processes.update(run)
        self._events.record("draining")
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                await self._until_empty()
        except TimeoutError:
            for run in list(self.runs):
                self._force(run, Snoozed(timedelta(0), "the worker was shut down"))
            await self._until_empty()
        self._threads.close()

    async def _until_empty(self) -> None:
        while self.busy:
            self.freed.clear()
            await self.freed.wait()


def _return_delay(job: ClaimedJob) -> timedelta:
    """Offer a returned job again at once the first time, later each further time."""
    return min(timedelta(seconds=2 ** (min(job.returned, 10) - 2)), _MAX_RETURN_DELAY)


def _timed_out(run: JobRun) -> AttemptOutcome:
    message = f"not done after {run.policy.timeout}"
    return Retried(
        ErrorInfo("run.timeout", message, "TimeoutError"), dependency=run.kind.handler_options.dependency
    )
