"""Event streams over a real connection, and the blocking client."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from fastapi import FastAPI

from duly import AsyncClient, Client, Duly, Status
from tests.client.conftest import Gate
from tests.http.conftest import served
from tests.worker.working import WAIT_TIMEOUT, working


async def test_events_are_streamed_as_they_happen_each_once(
    gate: Gate, app: Duly, api: FastAPI, key: str
) -> None:
    async with served(api) as address, AsyncClient(address, key) as client:
        job = await client.submit("report.build", {"regions": ["DE", "FR", "IT"]})
        events = []
        async with working(app):
            async for event in job.events():
                events.append(event)
                if event.event_type == "job.partial":
                    gate.opened.set()
        assert [event.event_seq for event in events] == list(range(1, len(events) + 1))
        assert (events[0].event_type, events[-1].event_type) == ("job.queued", "job.completed")
        assert [event.event_seq async for event in job.events(after=2)] == [
            event.event_seq for event in events[2:]
        ]
        assert [event async for event in job.events(after=len(events))] == []
        async for _ in job.events():
            break


async def test_the_blocking_client_has_the_same_methods(
    gate: Gate, app: Duly, api: FastAPI, key: str
) -> None:
    loop = asyncio.get_running_loop()

    def use_client(address: str) -> tuple[Any, ...]:
        with Client(address, key) as client:
            job = client.submit("report.build", {"regions": ["DE", "FR"]})
            for event in job.events():
                if event.event_type == "job.partial":
                    break
            others = client.submit_many([{"job_type": "report.refuse"}])
            loop.call_soon_threadsafe(gate.opened.set)
            stages: list[Any] = []
            result = job.result(WAIT_TIMEOUT)
            ended = job.wait(on_progress=lambda job_status: stages.append(job_status.status))
            [file] = job.artifacts()
            assert stages == [ended.status]
            assert len(job.partials()) == 2
            assert client.upload(b"x").startswith("blob:")
            assert {one.job_id for one in client.jobs()} == {job.job_id, others[0].job_id}
            return result, ended.status, len(job.download(file.name)), client.job(job.job_id).status().job_id

    async with served(api) as address, working(app):
        result, status, size, job_id = await asyncio.to_thread(use_client, address)
    assert (result, status, size) == ({"DE": 2, "FR": 2}, Status.COMPLETED, 100_000)
    assert isinstance(job_id, uuid.UUID)
