"""Enqueues that meet are written together: who comes while a batch of its org is written joins the next."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from duly.client.wake import Waker
from duly.model.errors import StoreUnavailable
from duly.model.job import JobSpec
from duly.store import jobs
from duly.store.jobs import Written
from duly.store.session import Database, retrying

_MOST = 500


class _Letter(NamedTuple):
    specs: Sequence[JobSpec]
    answer: asyncio.Future[list[Written]]


class Outbox:
    """Writes jobs, one batch of an org at a time. Nobody's error is another's."""

    def __init__(self, database: Database, waker: Waker) -> None:
        self._database = database
        self._waker = waker
        self._waiting: dict[UUID, list[_Letter]] = {}
        self._writing: dict[UUID, asyncio.Task[None]] = {}

    async def write(self, org_id: UUID, specs: Sequence[JobSpec]) -> list[Written]:
        """Write the jobs of one caller, all or none; the answers in their order."""
        if len(specs) > _MOST:
            return await self._write(org_id, specs)
        letter = _Letter(specs, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(org_id, []).append(letter)
        if org_id not in self._writing:
            # In a task of its own: the one who came first may leave while others wait for the same batch.
            self._writing[org_id] = asyncio.create_task(self._empty(org_id), name="duly-outbox")
        return await letter.answer

    async def close(self) -> None:
        """Return when everything is written that somebody still waits for."""
        await asyncio.gather(*self._writing.values())

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
        try:
            written = await self._write(org_id, [spec for letter in batch for spec in letter.specs])
        except StoreUnavailable as error:
            _fail(batch, error)
            return
        except Exception as error:
            if len(batch) == 1:
                _fail(batch, error)
                return
            for letter in batch:  # one of them is to blame: each for itself
                await self._deliver(org_id, [letter])
            return
        except BaseException:
            for letter in batch:
                letter.answer.cancel()
            raise
        answers = iter(written)
        for letter in batch:
            own = [next(answers) for _ in letter.specs]
            if not letter.answer.done():
                letter.answer.set_result(own)

    async def _write(self, org_id: UUID, specs: Sequence[JobSpec]) -> list[Written]:
        # A lone job wakes the workers by its own commit; in a crowd one call is enough for many.
        tells = self._waker.may_be_told()

        async def once() -> list[Written]:
            return await jobs.enqueue_alone(self._database, org_id, specs, wake=tells)

        written = await retrying(once)
        if not tells:
            self._waker.wake()
        return written


def _fail(batch: Sequence[_Letter], error: Exception) -> None:
    for letter in batch:
        if not letter.answer.done():
            letter.answer.set_exception(error)
