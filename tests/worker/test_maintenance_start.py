"""A starting worker runs waiting jobs before the maintenance, which never waits for long."""

from __future__ import annotations

import asyncio
import uuid
from functools import partial

import pytest

from duly import Duly
from duly.app import open_resources
from duly.worker import worker as worker_module
from duly.worker.options import WorkerConnections, WorkerOptions
from duly.worker.worker import Worker
from tests.worker.working import WAIT_TIMEOUT


def worker_with_maintenance(app: Duly, order: list[str], started: asyncio.Event, slots: int = 10) -> Worker:
    async def maintain(stop: asyncio.Event) -> None:
        order.append("maintenance")
        started.set()
        await stop.wait()

    urls = app.database_urls
    opening = partial(open_resources, app.settings, urls.url)
    connections = WorkerConnections(urls.url, urls.direct_url, opening)
    return Worker(app, WorkerOptions(slots=slots), connections, beside=maintain)


async def test_waiting_jobs_run_before_the_maintenance(
    app: Duly, acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "_MAINTENANCE_START_DELAY", WAIT_TIMEOUT)
    order: list[str] = []
    started = asyncio.Event()

    @app.job("test.note")
    async def note(n: int) -> None:
        order.append("job")

    await app.enqueue_many([note.call(n) for n in range(5)])
    async with asyncio.timeout(WAIT_TIMEOUT), worker_with_maintenance(app, order, started):
        await started.wait()
    assert order == ["job"] * 5 + ["maintenance"]


async def test_the_maintenance_of_a_busy_worker_starts_after_a_while(
    app: Duly, acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "_MAINTENANCE_START_DELAY", 0.1)
    order: list[str] = []
    started = asyncio.Event()

    @app.job("test.endless")
    async def endless(n: int) -> None:
        if not started.is_set():
            await endless.enqueue(n + 1)

    await endless.enqueue(0)
    async with asyncio.timeout(WAIT_TIMEOUT), worker_with_maintenance(app, order, started):
        await started.wait()
    assert order == ["maintenance"]


async def test_a_worker_that_stops_at_once_does_not_wait_for_its_maintenance(
    app: Duly, acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "_MAINTENANCE_START_DELAY", 2 * WAIT_TIMEOUT)
    monkeypatch.setattr(worker_module, "_MAINTENANCE_STOP_TIMEOUT", 2 * WAIT_TIMEOUT)
    async with asyncio.timeout(WAIT_TIMEOUT):
        async with worker_with_maintenance(app, [], asyncio.Event()):
            pass
