"""Probes over HTTP: tenant isolation and event streams."""

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

ROUTES = ("/v1/jobs/{}", "/v1/jobs/{}/events", "/v1/jobs/{}/logs", "/v1/jobs/{}/explanation")
STREAM_TIMEOUT = 60.0


class HttpProbes:
    """Sends requests with the API keys of the orgs."""

    def __init__(self, url: str, keys: Mapping[UUID, str]) -> None:
        self._keys = keys
        self._url = url
        self._http = httpx.AsyncClient(base_url=url, timeout=10)
        self._streams: list[StreamRead] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow the event streams of reports until the end of the block."""
        task = asyncio.create_task(self._follow_streams())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self._http.aclose()

    async def probe(self, known: Sequence[tuple[UUID, UUID]]) -> list[IsolationProbe]:
        """As each org, request a job of another org and an unknown one: both answers must be equal."""
        probes, owners = [], {job_id: org_id for org_id, job_id in known}
        for caller in self._keys:
            foreign = [job_id for org_id, job_id in known if org_id != caller]
            if foreign:
                route = random.choice(ROUTES)
                answers = [
                    await self._answer(caller, route, job) for job in (random.choice(foreign), uuid4())
                ]
                probes.append(
                    IsolationProbe(caller, route, answers[0], answers[1], await self._orgs(caller, owners))
                )
        return probes

    async def streams(self) -> list[StreamRead]:
        """Return the streams that were read to the end since the last call."""
        read, self._streams = self._streams, []
        return read

    async def _answer(self, caller: UUID, route: str, job_id: UUID) -> str:
        headers = {**self._key(caller), "x-request-id": f"probe-{caller}"}
        answer = await self._http.get(route.format(job_id), headers=headers)
        return f"{answer.status_code} {answer.text}".replace(str(job_id), "<id>")

    async def _orgs(self, caller: UUID, owners: Mapping[UUID, UUID]) -> tuple[UUID, ...]:
        """Return the owners of the jobs in the caller's list."""
        answer = await self._http.get("/v1/jobs?limit=50", headers=self._key(caller))
        listed = [UUID(job["job_id"]) for job in answer.raise_for_status().json()["jobs"]]
        return tuple({owners[job_id] for job_id in listed if job_id in owners})

    def _key(self, caller: UUID) -> dict[str, str]:
        return {"authorization": f"Bearer {self._keys[caller]}"}

    async def _follow_streams(self) -> None:
        org_id = next(iter(self._keys))
        async with AsyncClient(self._url, self._keys[org_id]) as client:
            while True:
                try:
                    async with asyncio.timeout(STREAM_TIMEOUT):
                        await self._follow_stream(client, org_id)
                except (DulyError, httpx.HTTPError, TimeoutError):
                    pass
                await asyncio.sleep(1)

    async def _follow_stream(self, client: AsyncClient, org_id: UUID) -> None:
        async for job in client.jobs(job_type=LONG):
            if not Status(job.status).terminal:
                events = [
                    (event.event_seq, event.event_type) async for event in client.job(job.job_id).events()
                ]
                self._streams.append(
                    StreamRead("a reader", org_id, job.job_id, tuple(events), to_the_end=True)
                )
            return
