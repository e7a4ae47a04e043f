"""Looks from outside, over HTTP: what strangers are told, and what readers of a stream see."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import httpx

from duly import AsyncClient, Status
from duly.core.errors import DulyError
from duly.testing.history import IsolationProbe, StreamRead

from .reports import LONG

_QUESTIONS = ("/v1/jobs/{}", "/v1/jobs/{}/events", "/v1/jobs/{}/logs", "/v1/jobs/{}/explanation")
_PATIENCE = 60.0


class Outside:
    """Asks with the keys of the orgs, as their programs do."""

    def __init__(self, url: str, keys: Mapping[UUID, str]) -> None:
        self._keys = keys
        self._url = url
        self._http = httpx.AsyncClient(base_url=url, timeout=10)
        self._read: list[StreamRead] = []

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Somebody follows one report after the other, until the end of the block."""
        reading = asyncio.create_task(self._read_on())
        try:
            yield
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await self._http.aclose()

    async def probe(self, known: Sequence[tuple[UUID, UUID]]) -> list[IsolationProbe]:
        """As every org, about a job of another and about one that nobody has: both answers must be alike."""
        probes, owners = [], {job_id: org_id for org_id, job_id in known}
        for caller in self._keys:
            foreign = [job_id for org_id, job_id in known if org_id != caller]
            if foreign:
                question = random.choice(_QUESTIONS)
                told = [await self._told(caller, question, job) for job in (random.choice(foreign), uuid4())]
                probes.append(
                    IsolationProbe(caller, question, told[0], told[1], await self._orgs(caller, owners))
                )
        return probes

    async def streams(self) -> list[StreamRead]:
        """What was read to the end since the last time."""
        read, self._read = self._read, []
        return read

    async def _told(self, caller: UUID, question: str, job_id: UUID) -> str:
        headers = {**self._key(caller), "x-request-id": f"probe-{caller}"}
        answer = await self._http.get(question.format(job_id), headers=headers)
        return f"{answer.status_code} {answer.text}".replace(str(job_id), "<id>")

    async def _orgs(self, caller: UUID, owners: Mapping[UUID, UUID]) -> tuple[UUID, ...]:
        """Whose jobs it is shown in a list."""
        answer = await self._http.get("/v1/jobs?limit=50", headers=self._key(caller))
        shown = [UUID(job["job_id"]) for job in answer.raise_for_status().json()["jobs"]]
        return tuple({owners[job_id] for job_id in shown if job_id in owners})

    def _key(self, caller: UUID) -> dict[str, str]:
        return {"authorization": f"Bearer {self._keys[caller]}"}

    async def _read_on(self) -> None:
        org_id = next(iter(self._keys))
        async with AsyncClient(self._url, self._keys[org_id]) as client:
            while True:
                try:
                    async with asyncio.timeout(_PATIENCE):
                        await self._read_one(client, org_id)
                except (DulyError, httpx.HTTPError, TimeoutError):
                    pass
                await asyncio.sleep(1)

    async def _read_one(self, client: AsyncClient, org_id: UUID) -> None:
        async for job in client.jobs(job_type=LONG):
            if not Status(job.status).terminal:
                seen = [(one.event_seq, one.event_type) async for one in client.job(job.job_id).events()]
                self._read.append(StreamRead("a reader", org_id, job.job_id, tuple(seen), to_the_end=True))
            return
