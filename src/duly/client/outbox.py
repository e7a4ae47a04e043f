"""Enqueues that meet are written together: who comes while a batch of its org is written joins the next."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import psycopg

from duly.client.counted import counted
from duly.client.wake import Waker
from duly.model.errors import StoreUnavailable
from duly.model.job import JobSpec
from duly.store import jobs
from duly.store.jobs import Written
from duly.store.session import Database, retrying

if TYPE_CHECKING:
    from duly.observe.traces import Traces

_MOST = 500
_PATIENCE = timedelta(milliseconds=200)
_CLOSING = 5.0


class _Letter(NamedTuple):
    specs: Sequence[JobSpec]
    answer: asyncio.Future[list[Written]]
    place: Any = None
    """Where its writer is, for traces: the first of a batch is the one whose trace has the statement."""


class Outbox:
    """Writes jobs, one batch of an org at a time. Nobody's error is another's."""

    def __init__(self, database: Database, waker: Waker, traces: Traces | None = None) -> None:
        self._database = database
        self._traces = traces
        self._waker = waker
        self._waiting: dict[UUID, list[_Letter]] = {}
        self._writing: dict[UUID, asyncio.Task[None]] = {}
        self._alone: set[asyncio.Task[None]] = set()

    async def write(self, org_id: UUID, specs: Sequence[JobSpec]) -> list[Written]:
        """Write the jobs of one caller, all or none; the answers in their order."""
        if len(specs) > _MOST:
            return await self._write(org_id, specs)
        place = None if self._traces is None else self._traces.here()
        letter = _Letter(specs, asyncio.get_running_loop().create_future(), place)
        self._waiting.setdefault(org_id, []).append(letter)
        if org_id not in self._writing:
            # In a task of its own: the one who came first may leave while others wait for the same batch.
            self._writing[org_id] = asyncio.create_task(
                self._empty(org_id), name="duly-outbox", context=Context()
            )
        return await letter.answer

    async def close(self) -> None:
        """Return when everything is written that somebody waits for; what takes too long is given up."""
        tasks = [*self._writing.values(), *self._alone]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_CLOSING)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _empty(self, org_id: UUID) -> None:
        try:
            while waiting := [one for one in self._waiting.pop(org_id, ()) if not one.answer.done()]:
                batch, size = [waiting[0]], len(waiting[0].specs)
                for letter in waiting[1:]:
                    size += len(letter.specs)
                    if size > _MOST:
                        break
                    batch.append(letter)
                self._waiting[org_id] = waiting[len(batch) :]
                await self._deliver(org_id, batch)
        finally:
            del self._writing[org_id]

    async def _deliver(self, org_id: UUID, batch: Sequence[_Letter]) -> None:
        specs = [spec for letter in batch for spec in letter.specs]
        try:
            with self._where(batch[0]):
                written = await self._write(org_id, specs, lock_timeout=_PATIENCE)
        except psycopg.errors.LockNotAvailable:
            # Somebody's open transaction holds one of their keys: who has another must not wait for it.
            for letter in batch:
                self._send_alone(org_id, letter)
        except Exception as error:
            if len(batch) == 1 or isinstance(error, StoreUnavailable):
                _fail(batch, error)
                return
            for letter in batch:  # one of them is to blame: each for itself
                await self._deliver(org_id, [letter])
        except BaseException:
            _cancel(batch)
            raise
        else:
            _answer(batch, written)

    def _send_alone(self, org_id: UUID, letter: _Letter) -> None:
        task = asyncio.create_task(self._deliver_alone(org_id, letter), name="duly-outbox")
        self._alone.add(task)
        task.add_done_callback(self._alone.discard)
        letter.answer.add_done_callback(lambda answer: answer.cancelled() and task.cancel())

    async def _deliver_alone(self, org_id: UUID, letter: _Letter) -> None:
        try:
            with self._where(letter):
                _answer([letter], await self._write(org_id, letter.specs))
        except Exception as error:
            _fail([letter], error)
        except BaseException:
            _cancel([letter])
            raise

    def _where(self, letter: _Letter) -> AbstractContextManager[object]:
        return nullcontext() if self._traces is None else self._traces.within(letter.place)

    async def _write(
        self, org_id: UUID, specs: Sequence[JobSpec], *, lock_timeout: timedelta | None = None
    ) -> list[Written]:
        # A lone job wakes the workers by its own commit; in a crowd one call is enough for many.
        tells = self._waker.may_be_told()
        once = partial(
            jobs.enqueue_alone, self._database, org_id, specs, wake=tells, lock_timeout=lock_timeout
        )
        written = await retrying(once)
        counted(specs, written)
        if not tells:
            self._waker.wake()
        return written


def _answer(batch: Sequence[_Letter], written: Sequence[Written]) -> None:
    start = 0
    for letter in batch:
        end = start + len(letter.specs)
        if not letter.answer.done():
            letter.answer.set_result(list(written[start:end]))
        start = end


def _cancel(batch: Sequence[_Letter]) -> None:
    for letter in batch:
        letter.answer.cancel()


def _fail(batch: Sequence[_Letter], error: Exception) -> None:
    for letter in batch:
        if not letter.answer.done():
            letter.answer.set_exception(error)
