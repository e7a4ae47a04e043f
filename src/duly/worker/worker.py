"""The worker: claim -> execute -> settle under a lease, until it drains."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Self
from uuid import UUID

import psycopg

from duly.core.errors import StoreError, UnknownQueue
from duly.db.clock import Clock
from duly.db.database import Database
from duly.db.listener import Listener
from duly.deprecated_names import DeprecatedName
from duly.jobs.application import App
from duly.jobs.resources import Resources
from duly.observability import logs
from duly.worker import settle_store
from duly.worker import workers_store as workers
from duly.worker.claim import Claimer
from duly.worker.context.progress import ProgressWriter
from duly.worker.context.services import HandlerServices
from duly.worker.execute import Executor
from duly.worker.heartbeat import Heartbeat
from duly.worker.isolation.child import ChildSetup
from duly.worker.isolation.pool import ProcessPool
from duly.worker.isolation.watchdog import Watchdog
from duly.worker.job_log import JobLogWriter
from duly.worker.loop_events import LoopEvents
from duly.worker.metrics import WorkerMetrics
from duly.worker.options import WorkerConnections, WorkerOptions
from duly.worker.queue_stats import QueueStatsRecorder
from duly.worker.settle import Settler
from duly.worker.settle_writer import RetryBudget, SettleWriter
from duly.worker.workers_store import HeldJobUpdate, WorkerIdentity

log = logging.getLogger("duly.worker")
_RETRY_PAUSE = 0.5
_MAINTENANCE_START_DELAY = 1.0
_MAINTENANCE_STOP_TIMEOUT = 5.0
_BUSY_SHARE = 0.75
_BUSY_CLAIM_DELAY = 0.005
_SMALL_CLAIM = 10
_MAX_UNKNOWN_CLAIMS = 100


class Worker:
    """Works on jobs. `async with worker:` works until the block is left, then drains."""

    steps = DeprecatedName("loop_events")

    def __init__(
        self,
        app: App,
        options: WorkerOptions,
        connections: WorkerConnections,
        *,
        when_stuck: Callable[[], None] | None = None,
        beside: Callable[[asyncio.Event], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        options.check()
        self.options = options
        self.loop_events = LoopEvents()
        self.draining = False
        self.retired = asyncio.Event()
        """Set when an operator has requested a drain. The worker drains; its owner should let it stop."""
        self._drained: asyncio.Task[None] | None = None
        self._app = app
        self._connections = connections
        self._when_stuck = when_stuck
        self._beside = beside
        self._ending = asyncio.Event()
        self._woken = asyncio.Event()
        self._registered = asyncio.Event()
        self._idle = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._identity = WorkerIdentity.new(self.options)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Register the worker, then start to claim."""
        handler_database = (await self._app.resources()).database
        self._resources = await self._connections.open_engine()
        self._resources.database.session_timeout = self.options.lease.total_seconds()
        self._build(self._resources, handler_database)
        try:
            self._processes.warm_up(list(self._app.registry))
            await self._register()
        except BaseException:
            await self._processes.close()
            await self._resources.database.close()
            raise
        self._loop = asyncio.get_running_loop()
        self._watchdog = Watchdog(self._executor, self.options.lease.total_seconds(), self._when_stuck)
        url, direct = self._connections.url, self._connections.direct
        self._heartbeat = Heartbeat(url, self, self.options.heartbeat, self.options.lease, direct=direct)
        self._heartbeat.start()
        listener = Listener(
            self._connections.listen_url,
            {"duly_ready": self._on_ready, "duly_cancel": lambda _: self._heartbeat.nudge()},
        )
        self.listening = listener.listening
        self._claiming = self._spawn(_restarting(self._claim_loop, "claimer"), "claimer")
        for name, loop in {
            "settler": self._settler.run,
            "deadlines": self._executor.watch,
            "progress": self._progress.run,
            "job-log": self._job_log.run,
            "listener": listener.run,
            "heartbeat": self._watch_heartbeat,
            "metrics": self._metrics.sample,
            "queue-stats": self._queue_stats.run,
        }.items():
            self._tasks.append(self._spawn(_restarting(loop, name), name))
        if self._beside is not None:
            self._maintenance = self._spawn(self._maintain(self._beside), "maintenance")

    def _build(self, resources: Resources, handler_database: Database) -> None:
        options, database = self.options, resources.database
        self._database = database
        self._clock = Clock()
        self._progress = ProgressWriter(database)
        self._job_log = JobLogWriter(database, options.job_log_level)
        budget = RetryBudget(options.retries_per_second, options.retry_burst)
        self._queue_stats = QueueStatsRecorder(self._clock.minute, database)
        pools = {"app": handler_database, "engine": database}
        self._metrics = WorkerMetrics(pools, self._queue_stats, on=options.metrics)
        writer = SettleWriter(self._app, database, self._clock, budget, self._metrics)
        self._settler = Settler(writer, self.loop_events, self._woken.set, self._job_log)
        self._claimer = Claimer(database, options.queues, self._clock, self._metrics)
        setup = ChildSetup(
            self._connections.open_resources,
            self._connections.url,
            options.result_max,
            options.job_log_level,
            logs.in_use(),
        )
        self._processes = ProcessPool(options.isolated, setup, self._job_log)
        services = HandlerServices(
            app=self._app,
            database=database,
            sessions=handler_database,
            blobs=resources.blobs,
            progress=self._progress,
            job_log=self._job_log,
            url=self._connections.url,
            inline_max=resources.payload_inline_max,
            result_max=options.result_max,
            traces=resources.traces,
        )
        self._executor = Executor(
            services, options, self._settler, self._processes, self.loop_events, self._woken.set
        )

    async def _maintain(self, beside: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
        """Run the maintenance, but jobs that wait for a worker first."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), _MAINTENANCE_START_DELAY)
        await beside(self._ending)

    def _spawn(self, loop: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        # In an empty context: what is logged here belongs to no request of the code that started the worker.
        return asyncio.create_task(loop, name=f"duly-{name}", context=contextvars.Context())

    async def _watch_heartbeat(self) -> None:
        """Close the connection of a heartbeat that hangs: on its own thread it would hang for ever."""
        timeout = self.options.lease.total_seconds() / 3
        while True:
            await asyncio.sleep(timeout / 2)
            self._heartbeat.cut_off(timeout)

    async def stop(self) -> None:
        """Drain: stop claiming, finish or give back running jobs, and mark the worker as stopped."""
        try:
            await self._begin_to_drain()
        finally:
            await self._close()
        self.loop_events.record("stopped")

    def _begin_to_drain(self) -> asyncio.Task[None]:
        """Start to drain, once."""
        if self._drained is None:
            self.draining = True
            for event in (self._idle, self._woken, self._registered):
                event.set()
            self._drained = self._spawn(self._drain(), "drain")
        return self._drained

    async def _drain(self) -> None:
        await self._claiming
        await self._executor.drain(self.options.drain)
        await self._settle_rest()
        self.loop_events.record("drained")

    async def _settle_rest(self) -> None:
        with suppress(TimeoutError):
            # A database that is away for longer than the lease has given our jobs to others anyway.
            async with asyncio.timeout(self.options.lease.total_seconds()):
                await self._settler.until_empty()
                with suppress(psycopg.Error, StoreError):
                    # Claims whose answer was lost, or whose last jobs two queues settled at once.
                    await self._return_unknown_claims()
                await self._settler.until_empty()
                await self._queue_stats.write()
                await self._mark_stopped()

    async def _close(self) -> None:
        self._ending.set()
        if self._beside is not None:
            await asyncio.wait([self._maintenance], timeout=_MAINTENANCE_STOP_TIMEOUT)
            self._tasks.append(self._maintenance)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._heartbeat.stop)
        self._watchdog.close()
        await self._processes.close()
        await self._job_log.close()
        await self._resources.database.close()

    async def _register(self) -> None:
        async with self._database.engine() as conn:
            unknown = await workers.unknown_queues(conn, self.options.queues)
            if unknown:
                raise UnknownQueue(f"no queue {unknown[0]}", field="queues", fix="create it, or name another")
            await workers.register(conn, self._identity)
        self._registered.set()

    async def _mark_stopped(self) -> None:
        with suppress(psycopg.Error, StoreError):
            async with self._database.engine() as conn:
                await workers.stop(conn, self.worker_id)

    async def _claim_loop(self) -> None:
        unsure, sure_since = False, time.monotonic()
        while not self.draining:
            await self._registered.wait()
            if self._executor.busy > self.options.slots * _BUSY_SHARE:
                # One claim for several slots, not one for each: queued jobs wait for a slot anyway.
                await asyncio.sleep(_BUSY_CLAIM_DELAY)
            self._woken.clear()
            try:
                # From time to time also without cause: a commit may come long after its answer was given up.
                if unsure or time.monotonic() > sure_since + self.options.lease.total_seconds():
                    await self._return_unknown_claims()
                    sure_since = time.monotonic()
                unsure = True
                claimed = await self._claim()
                unsure = False
            except (psycopg.Error, StoreError) as error:
                log.warning("could not claim, retrying: %s", error)
                self.loop_events.record("claim failed")
                await asyncio.sleep(_RETRY_PAUSE)
                continue
            except Exception:
                log.exception("could not claim, retrying")
                await asyncio.sleep(_RETRY_PAUSE)
                continue
            if claimed < _SMALL_CLAIM:
                # A few start before the next claim is sent; many run while it is under way.
                await asyncio.sleep(0)
            if not claimed and not self.draining:  # a drain may have begun before the wake-up was cleared
                self._idle.set()
                self.loop_events.record("idle")
                await self._pause()

    def _on_ready(self, notification: str) -> None:
        """Wake the claimer; the notification names the job if it is about a single one."""
        if not self._executor.runs:
            self._claimer.hint(notification)
        self._woken.set()

    async def _claim(self) -> int:
        free = self.options.slots - self._executor.busy
        if free <= 0 or self._settler.waiting > self.options.slots or self.draining:
            return 0
        worker_id = self.worker_id
        jobs = await self._claimer.round(worker_id, free)
        self._settler.expect(jobs)
        if len(jobs) < _SMALL_CLAIM:
            self._executor.start(jobs, worker_id)
        else:
            self._executor.start_soon(jobs, worker_id)
        self.loop_events.record("claimed", len(jobs))
        return len(jobs)

    async def _return_unknown_claims(self) -> None:
        """Give back jobs of claims that were committed although their answer was lost: they run nowhere."""
        async with self._database.engine() as conn:
            unknown = await workers.lock_abandoned(
                conn, limit=_MAX_UNKNOWN_CLAIMS, worker_id=self.worker_id, known=self._settler.known_claims
            )
            if unknown is not None and not unknown.jobs:
                await settle_store.settle(
                    conn, [], actor_type="worker", actor_id=str(self.worker_id), claim_ids=unknown.claim_ids
                )
        if unknown is not None and unknown.jobs:
            jobs = [job for job, _ in unknown.jobs]
            log.warning("gave back %d claimed jobs: the answer to their claim was lost", len(jobs))
            self._metrics.started(jobs)
            self._settler.expect(jobs)
            self._executor.give_back(jobs, self.worker_id, "the answer to its claim was lost")

    async def _pause(self) -> None:
        """Wait until a job may be ready or due, a slot is free, or the poll interval is over."""
        pause = self.options.poll
        if self._claimer.due_in is not None:
            pause = max(min(pause, self._claimer.due_in), timedelta(milliseconds=1))
        with suppress(TimeoutError):
            async with asyncio.timeout(pause.total_seconds()):
                await self._woken.wait()

    @property
    def why_not_ready(self) -> list[str]:
        """The reasons why the worker claims no jobs now; empty if it is ready."""
        if self.draining:
            return ["it is draining"]
        if not self._registered.is_set():
            return ["it is not registered"]
        silent = time.monotonic() - self._heartbeat.beat_at > self.options.lease.total_seconds()
        return ["its heartbeat fails"] if silent else []

    # `HeartbeatOwner`: called from the thread of the heartbeat.

    @property
    def worker_id(self) -> UUID:
        """The current id of the worker; a new one after it was declared lost."""
        return self._identity.worker_id

    def held(self) -> list[settle_store.Key]:
        """Return the attempts that the worker holds."""
        return [run.job.key for run in list(self._executor.runs)]

    def update_held(self, updates: Sequence[HeldJobUpdate]) -> None:
        """Apply lost leases and cancel requests of held jobs."""
        self._loop.call_soon_threadsafe(self._executor.apply_updates, updates)

    def request_drain(self) -> None:
        """Drain, because an operator requested it."""
        if not self.draining:
            self._loop.call_soon_threadsafe(self._retire)

    def declared_lost(self, worker_id: UUID) -> None:
        """Give up all jobs: the worker was silent for longer than its lease, and others took them over."""
        self._loop.call_soon_threadsafe(self._start_over, worker_id)

    def check_loop(self) -> bool:
        """Check whether a handler blocks the event loop; return whether the loop is given up."""
        return self._watchdog.check()

    def _retire(self) -> None:
        log.info("worker %s drains on request", self.worker_id)
        self._begin_to_drain()
        self._heartbeat.nudge()  # so that operators see it at once
        self.retired.set()

    def _start_over(self, lost_id: UUID) -> None:
        # A beat may also come before the registration.
        if self.worker_id != lost_id or not self._registered.is_set() or self.draining:
            return
        log.error("worker %s was declared lost; it gives up its jobs and registers again", lost_id)
        self._registered.clear()
        self._identity = WorkerIdentity.new(self.options)
        for run in list(self._executor.runs):
            self._executor.lose(run)
        self.loop_events.record("declared lost")
        self._tasks.append(self._spawn(self._register_again(), "register"))

    async def _register_again(self) -> None:
        while not self.draining:
            try:
                await self._register()
                return
            except Exception as error:
                log.warning("could not register, retrying: %s", error)
                await asyncio.sleep(_RETRY_PAUSE)


async def _restarting(loop: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
    """Run a loop of the worker and restart it after an unexpected error, which nothing else would report."""
    while True:
        try:
            await loop()
            return
        except Exception:
            log.exception("the %s loop failed, restarting it", name)
            await asyncio.sleep(_RETRY_PAUSE)
