"""Batch concurrent enqueues of an org into one statement, and wake the workers with few notifications."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import Context
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import psycopg

from duly.core.errors import StoreError, StoreUnavailable
from duly.core.job import JobSpec
from duly.db.database import Database, retry_transaction
from duly.jobs import store as job_store
from duly.jobs.store import Differing
from duly.observability import metrics

if TYPE_CHECKING:
    from duly.observability.traces import Traces

_MAX_BATCH_JOBS = 500
_BATCH_LOCK_TIMEOUT = timedelta(milliseconds=200)
_CLOSE_TIMEOUT = 5.0
_NOTIFY_INTERVAL = 0.003


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
        self._writers: dict[UUID, asyncio.Task[None]] = {}
        self._separate: set[asyncio.Task[None]] = set()

    async def write(self, org_id: UUID, specs: Sequence[JobSpec]) -> Differing:
        """Write the jobs of one caller, all or none, and return those that differ."""
        if len(specs) > _MAX_BATCH_JOBS:
            return await self._write(org_id, specs)
        trace = None if self._traces is None else self._traces.current_context()
        enqueue = _PendingEnqueue(specs, asyncio.get_running_loop().create_future(), trace)
        self._pending.setdefault(org_id, []).append(enqueue)
        if org_id not in self._writers:
            # In a task of its own: the first caller may be cancelled while others wait for the same batch.
            self._writers[org_id] = asyncio.create_task(
                self._write_pending(org_id), name="duly-enqueue-batcher", context=Context()
            )
        return await enqueue.result

    async def close(self) -> None:
        """Wait until all pending jobs are written, and cancel those that take too long."""
        tasks = [*self._writers.values(), *self._separate]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_CLOSE_TIMEOUT)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _write_pending(self, org_id: UUID) -> None:
        try:
            while pending := [one for one in self._pending.pop(org_id, ()) if not one.result.done()]:
                batch, size = [pending[0]], len(pending[0].specs)
                for enqueue in pending[1:]:
                    size += len(enqueue.specs)
                    if size > _MAX_BATCH_JOBS:
                        break
                    batch.append(enqueue)
                self._pending[org_id] = pending[len(batch) :]
                await self._write_batch(org_id, batch)
        finally:
            del self._writers[org_id]

    async def _write_batch(self, org_id: UUID, batch: Sequence[_PendingEnqueue]) -> None:
        specs = [spec for enqueue in batch for spec in enqueue.specs]
        try:
            with self._within_trace(batch[0]):
                jobs = await self._write(org_id, specs, lock_timeout=_BATCH_LOCK_TIMEOUT)
        except psycopg.errors.LockNotAvailable:
            # An open transaction locks one of the idempotency keys: callers with other keys must not wait.
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
        task = asyncio.create_task(self._write_separately(org_id, enqueue), name="duly-enqueue-batcher")
        self._separate.add(task)
        task.add_done_callback(self._separate.discard)
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
        # A single enqueue notifies with its own commit; under load one notification serves many.
        notify = self._waker.may_notify_with_commit()
        once = partial(
            job_store.enqueue_and_commit,
            self._database,
            org_id,
            specs,
            wake=notify,
            lock_timeout=lock_timeout,
        )
        jobs = await retry_transaction(once)
        count_enqueued(specs, jobs)
        if not notify:
            self._waker.wake()
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

    NOTIFY takes a lock of the whole server, so it is sent outside of their transactions. It is a hint only:
    workers find jobs by polling, too.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._again = False
        self._task: asyncio.Task[None] | None = None
        self._quiet_until = 0.0

    def may_notify_with_commit(self) -> bool:
        """Return whether the caller's commit may carry the notification: no other was sent lately.

        If so, other enqueues do not notify for a moment.
        """
        now = asyncio.get_running_loop().time()
        if now < self._quiet_until or (self._task is not None and not self._task.done()):
            return False
        self._quiet_until = now + _NOTIFY_INTERVAL
        return True

    def wake(self) -> None:
        """Send a notification soon, one for all calls in the meantime."""
        if self._task is not None and not self._task.done():
            self._again = True
            return
        self._task = asyncio.get_running_loop().create_task(
            self._notify(), name="duly-waker", context=Context()
        )

    async def close(self) -> None:
        """Send the pending notification."""
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await self._task

    async def _notify(self) -> None:
        while True:
            self._again = False
            with suppress(psycopg.Error, StoreError):
                await self._database.notify("duly_ready")
            await asyncio.sleep(_NOTIFY_INTERVAL)
            if not self._again:
                return


def count_enqueued(specs: Sequence[JobSpec], jobs: Differing) -> None:
    """Count the new jobs; in a transaction of the application, whether it commits is never known."""
    new: dict[tuple[str, str], int] = {}
    for spec, job in zip(specs, jobs, strict=True):
        if job is None or job.created:
            key = spec.job_type, spec.policy.queue
            new[key] = new.get(key, 0) + 1
    for (job_type, queue), number in new.items():
        metrics.count_enqueued(job_type, queue, number)
