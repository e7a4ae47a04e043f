"""Many readers of streams, who come and go as they like: each sees every event once and in order (I14)."""

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
_LOOK = job_store.read_event_heads
BUSY = "datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()"


@pytest.fixture
def options() -> HttpOptions:
    return HttpOptions(streams_max=2 * JOBS * READERS, requests_per_second=1e9, burst=10**9)


class Looks:
    """When the service looked for news."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self._next = asyncio.Event()

    async def __call__(self, *given: Any) -> Any:
        """Look, and note it."""
        self.times.append(asyncio.get_running_loop().time())
        self._next.set()
        return await _LOOK(*given)

    async def next(self) -> None:
        """Wait for one that is yet to come."""
        self._next.clear()
        await self._next.wait()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    made = Looks()
    monkeypatch.setattr(job_store, "read_event_heads", made)
    return made


async def submitted(http: httpx.AsyncClient, count: int, **payload: object) -> list[str]:
    """Where the events of new jobs are."""
    jobs = [{"job_type": "stream.run", "payload": {"number": n, **payload}} for n in range(count)]
    answer = await http.post("/v1/jobs/bulk", json={"jobs": jobs})
    return [job["events_url"] for job in answer.json()["jobs"]]


async def restless(listener: StreamReader, chance: random.Random) -> None:
    """Read to the end, with a new connection whenever it pleases."""
    while not listener.ended:
        await listener.listen(chance.choice([0, chance.randrange(1500), chance.randrange(6000), None]))


async def test_five_hundred_restless_readers_see_every_event_once_and_in_order(
    app: Duly, api: FastAPI, http: httpx.AsyncClient, key: str, many_files: None, looks: Looks
) -> None:
    beats = [asyncio.Event() for _ in range(PARTS)]

    @app.job("stream.run", allows_partial=True)
    async def run(ctx: Context, number: int) -> None:
        for beat in beats:
            await beat.wait()
            await ctx.partial({"job": number})

    paths = await submitted(http, JOBS)
    async with served(api) as address, working(app):
        readers = [StreamReader(address, path, key) for path in paths for _ in range(READERS)]
        chance = random.Random(SEED)
        reading = [asyncio.create_task(restless(one, random.Random(chance.random()))) for one in readers]
        for beat in beats:
            await looks.next()  # there are readers who wait
            beat.set()
        await asyncio.gather(*reading)
        await api.state.service.status_watcher._poller  # it ends: nobody waits any more
    events = 3 + PARTS  # queued, started, completed
    assert {tuple(one.seen) for one in readers} == {tuple(range(1, events + 1))}
    assert sum(one.connections for one in readers) > 2 * len(readers)
    apart = [after - before for before, after in pairwise(looks.times)]
    assert min(apart) >= 0.05, "one look for all of them, in every twentieth of a second"
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

    [path] = await submitted(http, 1)
    async with working(app):
        await app.handle(path.split("/")[-2], org_id=org).wait(60)
    async with served(api, buffer=4096) as address:
        asleep = [StreamReader(address, path, key) for _ in range(2 * app.settings.pool_max)]
        waiting = [await one.connect(buffer=4096) for one in asleep]
        quick = StreamReader(address, path, key)
        await quick.listen()
        assert (quick.ended, len(quick.seen)) == (True, 403)
        while api.state.service._streams[org] != len(asleep):
            await yield_to_loop()
        await until(sql, f"select not exists (select from pg_stat_activity where {BUSY})")
        assert (await http.get(path)).status_code == 200
        assert api.state.service._streams[org] == len(asleep), "they are in mid-stream"
        for one, (reader, writer) in zip(asleep, waiting, strict=True):
            await one.read(reader)
            writer.close()
            assert one.seen == quick.seen
