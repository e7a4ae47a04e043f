"""The customers at work: a few jobs a second over HTTP, some bursts, some second thoughts; never too much."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

import httpx

from duly import AsyncClient
from duly.client.requests import JobSubmission
from duly.core.errors import DulyError

from .asked import Asked
from .people import ORGS, Org
from .wishes import export_of, import_of, later, report, wish

MOST = 100_000
"""So many jobs the demo asks for; then it rests, until it is started anew."""
_REPORT = 16.0
_AWAY = (DulyError, httpx.HTTPError)


class Load:
    """Asks, and writes down what it was told."""

    def __init__(self, url: str, keys: Mapping[UUID, str], asked: Asked, *, most: int = MOST) -> None:
        self._clients = {org_id: AsyncClient(url, key, retries=0) for org_id, key in keys.items()}
        self._asked = asked
        self._left = most

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Until the end of the block."""
        work: list[Callable[[], Awaitable[None]]] = [self._report_on(org) for org in ORGS[:3]]
        work += [self._steady(org) for org in ORGS]
        work += [self._burst(ORGS[-1]), self._second_thoughts(ORGS[0])]
        running = [asyncio.create_task(_for_ever(one)) for one in work]
        try:
            yield
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def close(self) -> None:
        """Close the connections."""
        for client in self._clients.values():
            await client.close()

    async def begin(self, jobs: int) -> None:
        """Something to look at from the first moment on."""
        for org in ORGS:
            await self._ask(org, [wish(org) for _ in range(jobs // len(ORGS))])
        for org in ORGS[:3]:
            await self._ask(org, [report(org, _REPORT)])

    async def _ask(self, org: Org, wishes: Sequence[JobSubmission]) -> list[UUID]:
        if self._left < len(wishes):
            await asyncio.Event().wait()  # enough: what is there stays to be looked at
        self._left -= len(wishes)
        named: list[JobSubmission] = [{"idempotency_key": str(uuid.uuid4()), **one} for one in wishes]
        self._asked.asking(org.org_id, named)
        jobs = await self._clients[org.org_id].submit_many(named)
        told = [job.job_id for job in jobs]
        self._asked.told(org.org_id, named, told)
        return told

    def _steady(self, org: Org) -> Callable[[], Awaitable[None]]:
        async def once() -> None:
            await asyncio.sleep(random.expovariate(org.per_second))
            wished = [wish(org)]
            await self._ask(org, wished)
            if random.random() < 0.03:  # a client that is not sure asks again: it is the same job
                key = str(uuid.uuid4())
                for _ in range(2):
                    await self._ask(org, [{**wished[0], "idempotency_key": key}])

        return once

    def _report_on(self, org: Org) -> Callable[[], Awaitable[None]]:
        async def once() -> None:
            [job_id] = await self._ask(org, [report(org, _REPORT)])
            await self._clients[org.org_id].job(job_id).wait(timeout=120)
            await asyncio.sleep(random.uniform(0.5, 2))

        return once

    def _burst(self, org: Org) -> Callable[[], Awaitable[None]]:
        async def once() -> None:
            await self._ask(org, [random.choice((import_of, wish))(org) for _ in range(60)])
            await asyncio.sleep(random.uniform(45, 75))

        return once

    def _second_thoughts(self, org: Org) -> Callable[[], Awaitable[None]]:
        async def once() -> None:
            await asyncio.sleep(random.uniform(5, 12))
            [job_id] = await self._ask(org, [random.choice((later, export_of))(org)])
            await asyncio.sleep(random.uniform(0.2, 1.5))
            job = await self._clients[org.org_id].job(job_id).cancel("the customer thought better of it")
            self._asked.canceled(org.org_id, job_id, job.status)

        return once


async def _for_ever(once: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await once()
        except _AWAY:  # no room, or nobody there: later again
            await asyncio.sleep(1)
