"""Many stream readers that reconnect at random: each receives every event once and in order (I14)."""

from __future__ import annotations

import asyncio
import random
import uuid
from itertools import pairwise
from typing import Any

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from duly import Context, Duly
from duly.http.options import HttpOptions
from duly.jobs import store as job_store
from tests.http.conftest import served
from tests.http.stream_readers import StreamReader, many_files
from tests.worker.working import until, working, yield_to_loop

__all__ = ["many_files"]
JOBS, READERS, PARTS = 50, 10, 8
SEED = 14
_READ_EVENT_HEADS = job_store.read_event_heads
BUSY = "datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()"


@pytest.fixture
def options() -> HttpOptions:
    return HttpOptions(streams_max=2 * JOBS * READERS, requests_per_second=1e9, burst=10**9)


class PollRecorder:
    """Records when the service polled for new events."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self._next = asyncio.Event()

    async def __call__(self, *arguments: Any) -> Any:
        """Poll, and record the time."""
        self.times.append(asyncio.get_running_loop().time())
        self._next.set()
        return await _READ_EVENT_HEADS(*arguments)

    async def next(self) -> None:
        """Wait for the next poll."""
        self._next.clear()
        await self._next.wait()


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> PollRecorder:
    recorder = PollRecorder()
    monkeypatch.setattr(job_store, "read_event_heads", recorder)
    return recorder


async def submit_jobs(http: httpx.AsyncClient, count: int, **payload: object) -> list[str]:
    """Submit jobs; return the URLs of their events."""
    jobs = [{"job_type": "stream.run", "payload": {"number": n, **payload}} for n in range(count)]
    response = await http.post("/v1/jobs/bulk", json={"jobs": jobs})
    return [job["events_url"] for job in response.json()["jobs"]]


async def read_with_reconnects(stream_reader: StreamReader, chance: random.Random) -> None:
    """Read to the end over many connections of random length."""
    while not stream_reader.ended:
        await stream_reader.listen(chance.choice([0, chance.randrange(1500), chance.randrange(6000), None]))


async def test_500_reconnecting_readers_receive_every_event_once_and_in_order(
    app: Duly, api: FastAPI, http: httpx.AsyncClient, key: str, many_files: None, polls: PollRecorder
) -> None:
    releases = [asyncio.Event() for _ in range(PARTS)]

    @app.job("stream.run", allows_partial=True)
    async def run(ctx: Context, number: int) -> None:
        for release in releases:
            await release.wait()
            await ctx.partial({"job": number})

    paths = await submit_jobs(http, JOBS)
    async with served(api) as address, working(app):
        readers = [StreamReader(address, path, key) for path in paths for _ in range(READERS)]
        chance = random.Random(SEED)
        reading = [
            asyncio.create_task(read_with_reconnects(one, random.Random(chance.random()))) for one in readers
        ]
        for release in releases:
            await polls.next()  # readers are waiting
            release.set()
        await asyncio.gather(*reading)
        await api.state.service.status_watcher._poller  # the poller ends without readers
    events = 3 + PARTS  # queued, started, completed
    assert {tuple(one.event_seqs) for one in readers} == {tuple(range(1, events + 1))}
    assert sum(one.connections for one in readers) > 2 * len(readers)
    pauses = [after - before for before, after in pairwise(polls.times)]
    assert min(pauses) >= 0.05, "one poll every 50 ms serves all readers"
    assert api.state.service._streams == {}


async def test_a_slow_reader_does_not_block_others(
    app: Duly,
    api: FastAPI,
    http: httpx.AsyncClient,
    key: str,
    org: uuid.UUID,
    sql: psycopg.Connection,
) -> None:
    @app.job("stream.run", allows_partial=True)
    async def run(ctx: Context, number: int) -> None:
        for part in range(400):
            await ctx.partial(part)

    [path] = await submit_jobs(http, 1)
    async with working(app):
        await app.handle(path.split("/")[-2], org_id=org).wait(60)
    async with served(api, buffer=4096) as address:
        slow = [StreamReader(address, path, key) for _ in range(2 * app.settings.pool_max)]
        waiting = [await one.connect(buffer=4096) for one in slow]
        fast = StreamReader(address, path, key)
        await fast.listen()
        assert (fast.ended, len(fast.event_seqs)) == (True, 403)
        while api.state.service._streams[org] != len(slow):
            await yield_to_loop()
        await until(sql, f"select not exists (select from pg_stat_activity where {BUSY})")
        assert (await http.get(path)).status_code == 200
        assert api.state.service._streams[org] == len(slow), "their streams are still open"
        for one, (reader, writer) in zip(slow, waiting, strict=True):
            await one.read(reader)
            writer.close()
            assert one.event_seqs == fast.event_seqs
