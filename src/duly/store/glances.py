"""Jobs at a glance: what whoever polls one wants to know, in one round trip.

Many poll at the same time. Who asks while a look at jobs of their org is under way shares the next one with
the others who do: it begins after they asked, so that they see what they know of already.
"""

from __future__ import annotations

import asyncio
from itertools import chain, islice
from typing import NamedTuple
from uuid import UUID
from weakref import WeakKeyDictionary

from pydantic import TypeAdapter
from pydantic_core import from_json

from duly.model.freshness import Assessment
from duly.model.job import JobSnapshot
from duly.store.prepared import Values
from duly.store.session import Database
from duly.store.suspects import Suspect

_SUSPECT = TypeAdapter(Suspect)
_AT_ONCE = 200


class Seen(NamedTuple):
    """One job at one moment, the number of its last event, and whether it can be believed."""

    job: JobSnapshot
    event_seq: int
    freshness: Assessment


_Waiting = dict[UUID, list[asyncio.Future[Seen | None]]]


async def glance(database: Database, org_id: UUID, job_id: UUID) -> Seen | None:
    """One job; None if this org has none of that id."""
    desk = _desks.get(database)
    if desk is None:
        desk = _desks[database] = _Desk()
    return await desk.ask(database, org_id, job_id)


async def look(database: Database, org_id: UUID, job_ids: list[UUID]) -> dict[UUID, Seen]:
    """Some jobs of an org at one moment."""
    name = "jobs/glance" if len(job_ids) == 1 else "jobs/glance_many"
    values: Values = {
        "org_id": org_id,
        "job_id": job_ids[0],
        "org_ids": [org_id] * len(job_ids),
        "job_ids": job_ids,
    }
    found, known = await database.at_one_moment(org_id, name, "suspects/look", values)
    judged = {one.job_id: one.assess() for one in map(_SUSPECT.validate_json, known)}
    jobs = [(JobSnapshot.model_validate(row), row["event_seq"]) for row in map(from_json, found)]
    return {job.job_id: Seen(job, seq, judged[job.job_id]) for job, seq in jobs}


class _Desk:
    """Who waits for the next look, by org. An org has an entry as long as a look is under way for it."""

    def __init__(self) -> None:
        self._waiting: dict[UUID, _Waiting] = {}
        self._looking: set[asyncio.Task[None]] = set()

    async def ask(self, database: Database, org_id: UUID, job_id: UUID) -> Seen | None:
        waiting = self._waiting.get(org_id)
        if waiting is not None:
            told: asyncio.Future[Seen | None] = asyncio.get_running_loop().create_future()
            waiting.setdefault(job_id, []).append(told)
            return await told
        self._waiting[org_id] = {}
        try:
            return (await look(database, org_id, [job_id])).get(job_id)
        finally:
            self._go_on(database, org_id)

    def _go_on(self, database: Database, org_id: UUID) -> None:
        if not self._waiting[org_id]:
            del self._waiting[org_id]
            return
        task = asyncio.get_running_loop().create_task(self._look_on(database, org_id), name="duly-glance")
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)

    async def _look_on(self, database: Database, org_id: UUID) -> None:
        """Until nobody of the org waits."""
        try:
            while waiting := self._waiting[org_id]:
                await _tell(database, org_id, {job: waiting.pop(job) for job in [*islice(waiting, _AT_ONCE)]})
        finally:
            for told in chain(*self._waiting.pop(org_id).values()):
                told.cancel()


async def _tell(database: Database, org_id: UUID, waiting: _Waiting) -> None:
    """One look for all of them; what goes wrong goes wrong for each."""
    try:
        found = await look(database, org_id, list(waiting))
        for job, told in ((job, told) for job, all_told in waiting.items() for told in all_told):
            if not told.done():
                told.set_result(found.get(job))
    except Exception as error:
        for told in chain(*waiting.values()):
            if not told.done():
                told.set_exception(error)
    finally:
        for told in chain(*waiting.values()):
            told.cancel()


_desks: WeakKeyDictionary[Database, _Desk] = WeakKeyDictionary()
