"""Batch concurrent enqueues of an org into one statement, and wake the workers with few notifications."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import Context
from datetime import timedelta
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import psycopg

from duly.core.errors import StoreError, StoreUnavailable
from duly.core.job import JobSpec
from duly.db.database import Database, retry_transaction
from duly.jobs import store as job_store
from duly.jobs.store import Differing, Wake
from duly.observability import metrics

if TYPE_CHECKING:
    from duly.observability.traces import Traces

_MAX_BATCH_JOBS = 500
_BATCH_LOCK_TIMEOUT = timedelta(milliseconds=200)
_CLOSE_TIMEOUT = 5.0
_NOTIFY_INTERVAL = 0.003
_ENQUEUE_INTERVAL = 0.001
"""The time until a caller that enqueues one job after another begins with the next."""
_MAX_NOTIFY_DELAY = 0.01
"""The time that jobs wait for the notification of a later enqueue."""


class _PendingEnqueue(NamedTuple):
    specs: Sequence[JobSpec]
    result: asyncio.Future[Differing]
    trace: Any = None
    """The current trace of the caller: the statement of a batch belongs to the trace of its first caller."""


class EnqueueBatcher:
    """Writes jobs in batches of one org; callers that arrive during a write join the next batch.

    An error in the jobs of one caller does not fail those of another.
    """

    def __init__(self, database: Database, waker: Waker, traces: Traces | None = None) -> None:
        self._database = database
        self._traces = traces
        self._waker = waker
        self._pending: dict[UUID, list[_PendingEnqueue]] = {}
        """The next batch of each org for which one is being written."""
        self._met_others = True
        """Whether others arrived during the last write: the next one waits for those about to arrive."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()

    async def write(self, org_id: UUID, specs: Sequence[JobSpec]) -> Differing:
        """Write the jobs of one caller, all or none, and return those that differ."""
        if len(specs) > _MAX_BATCH_JOBS:
            return await self._write(org_id, specs)
        if org_id not in self._pending:
            try:
                jobs = await self._write_alone(org_id, specs)
            except psycopg.errors.LockNotAvailable:
                # An open transaction locks one of the idempotency keys: others must not wait.
                return await self._write(org_id, specs)
            if jobs is not None:
                return jobs
        trace = None if self._traces is None else self._traces.current_context()
        enqueue = _PendingEnqueue(specs, asyncio.get_running_loop().create_future(), trace)
        self._pending[org_id].append(enqueue)
        return await enqueue.result

    async def close(self) -> None:
        """Wait until all pending jobs are written, and cancel those that take too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                while self._pending or self._tasks:
                    self._idle.clear()
                    await self._idle.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _write_alone(self, org_id: UUID, specs: Sequence[JobSpec]) -> Differing | None:
        """Write the jobs of a caller on its own task, unless others enqueue for the org at the same time.

        They and those that arrive during the write get a task: it must not end when this caller is cancelled.
        """
        pending = self._pending[org_id] = []
        try:
            if self._met_others:
                await asyncio.sleep(0)
                if pending:
                    return None
            return await self._write(org_id, specs, lock_timeout=_BATCH_LOCK_TIMEOUT)
        finally:
            self._met_others = bool(pending)
            if pending:
                self._start(self._write_pending(org_id), context=Context())
            else:
                self._end(org_id)

    def _start(self, work: Coroutine[Any, Any, None], context: Context | None = None) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name="duly-enqueue-batcher", context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._idle.set())
        return task

    def _end(self, org_id: UUID) -> None:
        del self._pending[org_id]
        self._idle.set()

    async def _write_pending(self, org_id: UUID) -> None:
        pending = self._pending[org_id]
        try:
            while pending:
                sizes = accumulate(len(enqueue.specs) for enqueue in pending)
                count = sum(size <= _MAX_BATCH_JOBS for size in sizes)
                batch = [enqueue for enqueue in pending[:count] if not enqueue.result.done()]
                del pending[:count]
                if batch:
                    await self._write_batch(org_id, batch)
                await asyncio.sleep(0)  # the callers of this batch may enqueue again at once
        finally:
            _cancel(pending)
            self._end(org_id)

    async def _write_batch(self, org_id: UUID, batch: Sequence[_PendingEnqueue]) -> None:
        specs = [spec for enqueue in batch for spec in enqueue.specs]
        try:
            with self._within_trace(batch[0]):
                jobs = await self._write(org_id, specs, lock_timeout=_BATCH_LOCK_TIMEOUT)
        except psycopg.errors.LockNotAvailable:
            for enqueue in batch:
                self._start_separately(org_id, enqueue)
        except Exception as error:
            if len(batch) == 1 or isinstance(error, StoreUnavailable):
                _fail(batch, error)
                return
            for enqueue in batch:  # one of them caused the error: write each on its own
                await self._write_batch(org_id, [enqueue])
        except BaseException:
            _cancel(batch)
            raise
        else:
            _resolve(batch, jobs)

    def _start_separately(self, org_id: UUID, enqueue: _PendingEnqueue) -> None:
        task = self._start(self._write_separately(org_id, enqueue))
        enqueue.result.add_done_callback(lambda result: result.cancelled() and task.cancel())

    async def _write_separately(self, org_id: UUID, enqueue: _PendingEnqueue) -> None:
        try:
            with self._within_trace(enqueue):
                _resolve([enqueue], await self._write(org_id, enqueue.specs))
        except Exception as error:
            _fail([enqueue], error)
        except BaseException:
            _cancel([enqueue])
            raise

    def _within_trace(self, enqueue: _PendingEnqueue) -> AbstractContextManager[object]:
        return nullcontext() if self._traces is None else self._traces.use_context(enqueue.trace)

    async def _write(
        self, org_id: UUID, specs: Sequence[JobSpec], *, lock_timeout: timedelta | None = None
    ) -> Differing:
        with self._waker.turn() as wake:
            jobs = await retry_transaction(
                partial(
                    job_store.enqueue_and_commit,
                    self._database,
                    org_id,
                    specs,
                    wake=wake,
                    lock_timeout=lock_timeout,
                )
            )
        count_enqueued(specs, jobs)
        return jobs


def _resolve(batch: Sequence[_PendingEnqueue], jobs: Differing) -> None:
    start = 0
    for enqueue in batch:
        end = start + len(enqueue.specs)
        if not enqueue.result.done():
            enqueue.result.set_result(jobs[start:end])
        start = end


def _cancel(batch: Sequence[_PendingEnqueue]) -> None:
    for enqueue in batch:
        enqueue.result.cancel()


def _fail(batch: Sequence[_PendingEnqueue], error: Exception) -> None:
    for enqueue in batch:
        if not enqueue.result.done():
            enqueue.result.set_exception(error)


class Waker:
    """Notifies workers of new jobs, with one notification for many enqueues.

    NOTIFY locks out all others of the server until its commit is on disk, so only the first enqueue after a
    pause notifies with its commit. It is a hint only: workers find jobs by polling, too.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._idle_from = self._quiet_until = 0.0

    @contextmanager
    def turn(self) -> Iterator[Wake | None]:
        """Yield when an enqueue notifies the workers, of its jobs and earlier ones; if not, they are soon."""
        wake = self._choose()
        late = None
        if wake == "after commit" and self._stop_timer():
            # Earlier jobs do not wait for long: it may have to wait for a lock.
            late = asyncio.get_running_loop().call_later(_MAX_NOTIFY_DELAY, self.wake)
        try:
            yield wake
        except BaseException:
            wake = None
            raise
        finally:
            if late is not None:
                late.cancel()
            if wake is None:
                self.wake()

    def _choose(self) -> Wake | None:
        now = asyncio.get_running_loop().time()
        if now < self._quiet_until:
            return None
        idle = now >= self._idle_from and self._timer is None
        self._idle_from = now + _NOTIFY_INTERVAL
        if not idle:
            self._quiet_until = self._idle_from
        return "with commit" if idle else "after commit"

    def wake(self) -> None:
        """Notify soon, once for all calls in the meantime, unless an enqueue does it first."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            at = max(loop.time(), self._quiet_until) + _ENQUEUE_INTERVAL
            self._timer = loop.call_at(at, self._start, context=Context())

    async def close(self) -> None:
        """Send the pending notification."""
        if self._stop_timer():
            await self._notify()
        if self._task is not None:
            await asyncio.wait([self._task])

    def _start(self) -> None:
        self._timer = None
        if self._task is not None and not self._task.done():
            self.wake()
            return
        self._idle_from = self._quiet_until = asyncio.get_running_loop().time() + _NOTIFY_INTERVAL
        self._task = asyncio.create_task(self._notify(), name="duly-waker")

    def _stop_timer(self) -> bool:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        return timer is not None

    async def _notify(self) -> None:
        with suppress(psycopg.Error, StoreError):
            await self._database.notify("duly_ready")


def count_enqueued(specs: Sequence[JobSpec], jobs: Differing) -> None:
    """Count the new jobs; in a transaction of the application, whether it commits is never known."""
    new: dict[tuple[str, str], int] = {}
    for spec, job in zip(specs, jobs, strict=True):
        if job is None or job.created:
            key = spec.job_type, spec.policy.queue
            new[key] = new.get(key, 0) + 1
    for (job_type, queue), number in new.items():
        metrics.count_enqueued(job_type, queue, number)
