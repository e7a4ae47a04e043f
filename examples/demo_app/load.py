"""The load: the customers submit a few jobs per second over HTTP, with bursts and cancellations."""

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

from .customers import ORGS, Org
from .job_requests import catalog_import, customer_export, random_job, renewal, report
from .submissions import SubmissionLog

MAX_JOBS = 100_000
"""Jobs that the demo submits in total; then it pauses until it is restarted."""
REPORT_SECONDS = 16.0
UNAVAILABLE = (DulyError, httpx.HTTPError)


class Load:
    """Submits jobs and records the answers."""

    def __init__(
        self, url: str, keys: Mapping[UUID, str], submissions: SubmissionLog, *, max_jobs: int = MAX_JOBS
    ) -> None:
        self._clients = {org_id: AsyncClient(url, key, retries=0) for org_id, key in keys.items()}
        self._submissions = submissions
        self._remaining = max_jobs

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Submit jobs until the end of the block."""
        work: list[Callable[[], Awaitable[None]]] = [self._report_on(org) for org in ORGS[:3]]
        work += [self._steady(org) for org in ORGS]
        work += [self._burst(ORGS[-1]), self._cancellations(ORGS[0])]
        tasks = [asyncio.create_task(_repeat(one)) for one in work]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Close the connections."""
        for client in self._clients.values():
            await client.close()

    async def fill(self, jobs: int) -> None:
        """Submit jobs at the start, so that there is something to see."""
        for org in ORGS:
            await self._submit(org, [random_job(org) for _ in range(jobs // len(ORGS))])
        for org in ORGS[:3]:
            await self._submit(org, [report(org, REPORT_SECONDS)])

    async def _submit(self, org: Org, requests: Sequence[JobSubmission]) -> list[UUID]:
        if self._remaining < len(requests):
            await asyncio.Event().wait()  # the limit is reached: pause
        self._remaining -= len(requests)
        keyed: list[JobSubmission] = [{"idempotency_key": str(uuid.uuid4()), **one} for one in requests]
        self._submissions.record_request(org.org_id, keyed)
        jobs = await self._clients[org.org_id].submit_many(keyed)
        job_ids = [job.job_id for job in jobs]
        self._submissions.record_answer(org.org_id, keyed, job_ids)
        return job_ids

    def _steady(self, org: Org) -> Callable[[], Awaitable[None]]:
        async def once() -> None:
            await asyncio.sleep(random.expovariate(org.per_second))
            requests = [random_job(org)]
            await self._submit(org, requests)
            if random.random() < 0.03:  # a retried request is the same job
                key = str(uuid.uuid4())
                for _ in range(2):
                    await self._submit(org, [{**requests[0], "idempotency_key": key}])

        return once

    def _report_on(self, org: Org) -> Callable[[], Awaitable[None]]:
        async def once() -> None:
            [job_id] = await self._submit(org, [report(org, REPORT_SECONDS)])
            await self._clients[org.org_id].job(job_id).wait(timeout=120)
            await asyncio.sleep(random.uniform(0.5, 2))

        return once

    def _burst(self, org: Org) -> Callable[[], Awaitable[None]]:
        async def once() -> None:
            await self._submit(org, [random.choice((catalog_import, random_job))(org) for _ in range(60)])
            await asyncio.sleep(random.uniform(45, 75))

        return once

    def _cancellations(self, org: Org) -> Callable[[], Awaitable[None]]:
        async def once() -> None:
            await asyncio.sleep(random.uniform(5, 12))
            [job_id] = await self._submit(org, [random.choice((renewal, customer_export))(org)])
            await asyncio.sleep(random.uniform(0.2, 1.5))
            job = await self._clients[org.org_id].job(job_id).cancel("the customer thought better of it")
            self._submissions.record_cancellation(org.org_id, job_id, job.status)

        return once


async def _repeat(once: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await once()
        except UNAVAILABLE:  # over a limit, or not reachable: retry later
            await asyncio.sleep(1)
