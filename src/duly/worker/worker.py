"""The worker: claim, run, settle, keep the lease; drain when told to."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import socket
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import timedelta
from importlib.metadata import version
from typing import Any, Self
from uuid import UUID, uuid4

import psycopg

from duly.client.app import App
from duly.client.ground import Ground
from duly.model.errors import StoreError, UnknownQueue
from duly.observe import logs
from duly.store import work, workers
from duly.store.listen import Listener
from duly.store.session import Database
from duly.store.work import Key
from duly.store.workers import Identity, News
from duly.worker.claimer import Claimer, Clock
from duly.worker.executor import Executor
from duly.worker.finisher import Finisher
from duly.worker.heartbeat import Heartbeat
from duly.worker.isolate import ProcessPool
from duly.worker.lines import LineKeeper
from duly.worker.messages import Setup
from duly.worker.minutes import Minutes
from duly.worker.options import WorkerOptions
from duly.worker.places import Places
from duly.worker.progress import ProgressKeeper
from duly.worker.steps import Steps
from duly.worker.tally import Tally
from duly.worker.watchdog import Watchdog
from duly.worker.workshop import Workshop
from duly.worker.writer import RetryBudget, Writer

log = logging.getLogger("duly.worker")
_AGAIN = 0.5
_PATIENCE = 5.0
_BUSY = 0.75
_GATHER = 0.005
_FEW = 10
_CLAIMS = 100


class Worker:
    """Does jobs. `async with worker:` works until the block is left, then drains."""

    def __init__(
        self,
        app: App,
        options: WorkerOptions,
        places: Places,
        *,
        when_stuck: Callable[[], None] | None = None,
        beside: Callable[[asyncio.Event], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        options.check()
        self.options = options
        self.steps = Steps()
        self.draining = False
        self.retired = asyncio.Event()
        """Set when an operator has asked it to drain. It does so by itself; whoever runs it lets it end."""
        self._drained: asyncio.Task[None] | None = None
        self._app = app
        self._places = places
        self._when_stuck = when_stuck
        self._beside = beside
        self._ending = asyncio.Event()
        self._woken = asyncio.Event()
        self._registered = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._identity = self._fresh_identity()

    def _fresh_identity(self) -> Identity:
        options = self.options
        return Identity(
            worker_id=uuid4(),
            name=options.name or f"{socket.gethostname()}:{os.getpid()}",
            host=socket.gethostname(),
            pid=os.getpid(),
            version=version("duly"),
            queues=options.queues,
            slots=options.slots,
            lease=options.lease,
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Register, then begin to claim."""
        sessions = (await self._app.ground()).database
        self._ground = await self._places.open_engine()
        self._ground.database.limit = self.options.lease.total_seconds()
        self._build(self._ground, sessions)
        try:
            self._processes.warm_up(list(self._app.registry))
            await self._register()
        except BaseException:
            await self._processes.close()
            await self._ground.database.close()
            raise
        self._loop = asyncio.get_running_loop()
        self._watchdog = Watchdog(self._executor, self.options.lease.total_seconds(), self._when_stuck)
        self._heartbeat = Heartbeat(
            self._places.url, self, self.options.heartbeat, self.options.lease, direct=self._places.direct
        )
        self._heartbeat.start()
        listener = Listener(
            self._places.listen_url,
            {"duly_ready": self._hear_of, "duly_cancel": lambda _: self._heartbeat.nudge()},
        )
        self.listening = listener.listening
        self._claiming = self._spawn(_for_ever(self._claim_on, "claimer"), "claimer")
        for name, loop in {
            "finisher": self._finisher.run,
            "watch": self._executor.watch,
            "progress": self._keeper.run,
            "lines": self._lines.run,
            "listener": listener.run,
            "heartbeat": self._mind_heartbeat,
            "tally": self._tally.look_around,
            "minutes": self._minutes.run,
        }.items():
            self._tasks.append(self._spawn(_for_ever(loop, name), name))
        if self._beside is not None:
            self._chores = self._spawn(self._beside(self._ending), "upkeep")

    def _build(self, ground: Ground, sessions: Database) -> None:
        options, database = self.options, ground.database
        self._database = database
        self._clock = Clock()
        self._keeper = ProgressKeeper(database)
        self._lines = LineKeeper(database, options.job_log_level)
        budget = RetryBudget(options.retries_per_second, options.retry_burst)
        self._minutes = Minutes(self._clock.minute, database)
        self._tally = Tally({"app": sessions, "engine": database}, self._minutes, on=options.metrics)
        writer = Writer(self._app, database, self._clock, budget, self._tally)
        self._finisher = Finisher(writer, self.steps, self._woken.set, self._lines)
        self._claimer = Claimer(database, options.queues, self._clock, self._tally)
        told = (options.result_max, options.job_log_level, logs.in_use())
        setup = Setup(self._places.open_ground, self._places.url, *told)
        self._processes = ProcessPool(options.isolated, setup, self._lines)
        shop = Workshop(
            app=self._app,
            database=database,
            sessions=sessions,
            blobs=ground.blobs,
            keeper=self._keeper,
            lines=self._lines,
            url=self._places.url,
            inline_max=ground.payload_inline_max,
            result_max=options.result_max,
            traces=ground.traces,
        )
        self._executor = Executor(shop, options, self._finisher, self._processes, self.steps, self._woken.set)

    def _spawn(self, loop: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        # In no context but our own: what is logged here belongs to no request of whoever started us.
        return asyncio.create_task(loop, name=f"duly-{name}", context=contextvars.Context())

    async def _mind_heartbeat(self) -> None:
        """It has a thread of its own, but a connection that leads nowhere would hold that up for ever."""
        patience = self.options.lease.total_seconds() / 3
        while True:
            await asyncio.sleep(patience / 2)
            self._heartbeat.cut_off(patience)

    async def stop(self) -> None:
        """Drain: claim nothing more, finish or give back what runs, say goodbye."""
        try:
            await self._begin_to_drain()
        finally:
            await self._close()
        self.steps.announce("stopped")

    def _begin_to_drain(self) -> asyncio.Task[None]:
        """Once, whoever asks for it."""
        if self._drained is None:
            self.draining = True
            self._woken.set()
            self._registered.set()
            self._drained = self._spawn(self._drain(), "drain")
        return self._drained

    async def _drain(self) -> None:
        await self._claiming
        await self._executor.drain(self.options.drain)
        await self._settle_the_rest()
        self.steps.announce("drained")

    async def _settle_the_rest(self) -> None:
        with suppress(TimeoutError):
            # A database that is away for longer than the lease has given our jobs to others anyway.
            async with asyncio.timeout(self.options.lease.total_seconds()):
                await self._finisher.until_empty()
                with suppress(psycopg.Error, StoreError):
                    # Claims whose answer was lost, or whose last jobs were settled at two desks at once.
                    await self._give_back_unknown()
                await self._finisher.until_empty()
                await self._minutes.write()
                await self._say_goodbye()

    async def _close(self) -> None:
        self._ending.set()
        if self._beside is not None:
            await asyncio.wait([self._chores], timeout=_PATIENCE)
            self._tasks.append(self._chores)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._heartbeat.stop)
        self._watchdog.close()
        await self._processes.close()
        await self._lines.close()
        await self._ground.database.close()

    async def _register(self) -> None:
        async with self._database.engine_session() as conn:
            unknown = await workers.unknown_queues(conn, self.options.queues)
            if unknown:
                raise UnknownQueue(f"no queue {unknown[0]}", field="queues", fix="create it, or name another")
            await workers.register(conn, self._identity)
        self._registered.set()

    async def _say_goodbye(self) -> None:
        with suppress(psycopg.Error, StoreError):
            async with self._database.engine_session() as conn:
                await workers.stop(conn, self.worker_id)

    async def _claim_on(self) -> None:
        unsure, sure_since = False, time.monotonic()
        while not self.draining:
            await self._registered.wait()
            if self._executor.busy > self.options.slots * _BUSY:
                # One claim for several slots, not one for each: whoever waits, waits for a slot anyway.
                await asyncio.sleep(_GATHER)
            self._woken.clear()
            try:
                # From time to time also without cause: a commit may come long after its answer was given up.
                if unsure or time.monotonic() > sure_since + self.options.lease.total_seconds():
                    await self._give_back_unknown()
                    sure_since = time.monotonic()
                unsure = True
                taken = await self._claim()
                unsure = False
            except (psycopg.Error, StoreError) as error:
                log.warning("nothing could be claimed, trying again: %s", error)
                self.steps.announce("trouble")
                await asyncio.sleep(_AGAIN)
                continue
            except Exception:
                log.exception("nothing could be claimed, trying again")
                await asyncio.sleep(_AGAIN)
                continue
            if taken < _FEW:
                # A few start before the next claim is sent; many run while it is under way.
                await asyncio.sleep(0)
            if not taken and not self.draining:  # whoever stops us may have called before the bell was reset
                self.steps.announce("idle")
                await self._pause()

    def _hear_of(self, lane: str) -> None:
        """Something is ready; if it is a single job, in this lane."""
        if not self._executor.runs:
            self._claimer.hint(lane)
        self._woken.set()

    async def _claim(self) -> int:
        free = self.options.slots - self._executor.busy
        if free <= 0 or self._finisher.waiting > self.options.slots or self.draining:
            return 0
        worker_id = self.worker_id
        jobs = await self._claimer.round(worker_id, free)
        self._finisher.expect(jobs)
        if len(jobs) < _FEW:
            self._executor.start(jobs, worker_id)
        else:
            self._executor.start_soon(jobs, worker_id)
        self.steps.announce("claimed", len(jobs))
        return len(jobs)

    async def _give_back_unknown(self) -> None:
        """A claim may have been committed although its answer was lost: nobody runs those jobs."""
        async with self._database.engine_session() as conn:
            found = await workers.abandoned(
                conn, limit=_CLAIMS, worker_id=self.worker_id, known=self._finisher.known_claims
            )
            if found is not None and not found.jobs:
                who = str(self.worker_id)
                await work.settle(conn, [], actor_type="worker", actor_id=who, claim_ids=found.claim_ids)
        if found is not None and found.jobs:
            jobs = [job for job, _ in found.jobs]
            log.warning("%d claimed jobs are given back: the answer to their claim was lost", len(jobs))
            self._tally.started(jobs)
            self._finisher.expect(jobs)
            self._executor.give_back(jobs, self.worker_id, "the answer to its claim was lost")

    async def _pause(self) -> None:
        """Until something is said to be ready, something has ended, or it is time to look."""
        pause = self.options.poll
        if self._claimer.due_in is not None:
            pause = max(min(pause, self._claimer.due_in), timedelta(milliseconds=1))
        with suppress(TimeoutError):
            async with asyncio.timeout(pause.total_seconds()):
                await self._woken.wait()

    @property
    def why_not_ready(self) -> list[str]:
        """Why it takes no jobs now; nothing if it does."""
        if self.draining:
            return ["it drains"]
        if not self._registered.is_set():
            return ["it is not registered"]
        silent = time.monotonic() - self._heartbeat.beat_at > self.options.lease.total_seconds()
        return ["no heartbeat was heard"] if silent else []

    # What the heartbeat asks and tells, from its own thread.

    @property
    def worker_id(self) -> UUID:
        """Who this worker is, since it last introduced itself."""
        return self._identity.worker_id

    def held(self) -> list[Key]:
        """The attempts it holds."""
        return list(self._executor.runs)

    def hear(self, news: Sequence[News]) -> None:
        """What became of them."""
        self._loop.call_soon_threadsafe(self._executor.hear, news)

    def asked_to_drain(self) -> None:
        """An operator wants it to end."""
        if not self.draining:
            self._loop.call_soon_threadsafe(self._retire)

    def declared_lost(self, worker_id: UUID) -> None:
        """It was silent for longer than its lease: everything it held is another's now."""
        self._loop.call_soon_threadsafe(self._start_over, worker_id)

    def check_loop(self) -> bool:
        """Look whether something blocks the event loop; whether it is to be given up."""
        return self._watchdog.check()

    def _retire(self) -> None:
        log.info("worker %s was asked to drain", self.worker_id)
        self._begin_to_drain()
        self._heartbeat.nudge()  # whoever asked wants to see it
        self.retired.set()

    def _start_over(self, lost_id: UUID) -> None:
        # A beat may also come before the introduction.
        if self.worker_id != lost_id or not self._registered.is_set() or self.draining:
            return
        log.error("worker %s was declared lost; its jobs are given up, it starts over", lost_id)
        self._registered.clear()
        self._identity = self._fresh_identity()
        for run in list(self._executor.runs.values()):
            self._executor.lose(run)
        self.steps.announce("declared lost")
        self._tasks.append(self._spawn(self._register_again(), "register"))

    async def _register_again(self) -> None:
        while not self.draining:
            try:
                await self._register()
                return
            except Exception as error:
                log.warning("not registered, trying again: %s", error)
                await asyncio.sleep(_AGAIN)


async def _for_ever(loop: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
    """Run a loop of the worker. It should not fail; but if it did and stayed away, nothing would say so."""
    while True:
        try:
            await loop()
            return
        except Exception:
            log.exception("the %s failed, and starts again", name)
            await asyncio.sleep(_AGAIN)
