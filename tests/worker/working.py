"""A worker at work, for as long as a test needs it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg

from duly import Duly, Handle, JobSnapshot, RetryPolicy
from duly.app import open_resources
from duly.maintenance.reaper import Reaper
from duly.worker import claim as claims
from duly.worker.options import WorkerConnections, WorkerOptions
from duly.worker.worker import Worker
from duly.worker.workers_store import WorkerIdentity, register

AT_ONCE = RetryPolicy(max_attempts=5, delays=(timedelta(milliseconds=1),))
"""Tried again without delay."""
TWICE = RetryPolicy(max_attempts=2, delays=(timedelta(milliseconds=1),))
ONCE = RetryPolicy(max_attempts=1)
NOWHERE = "postgresql://127.0.0.1:1/nowhere"
PATIENCE = 60
"""Seconds after which what did not come is not waited for any more."""


def brief(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


@asynccontextmanager
async def working(app: Duly, **choices: Any) -> AsyncIterator[Worker]:
    """A worker; whatever waits inside the block gives up some day."""
    async with asyncio.timeout(PATIENCE):
        async with app.worker(**{"drain": brief(10), **choices}) as worker:
            yield worker


@asynccontextmanager
async def deaf(app: Duly, sql: psycopg.Connection[Any], **choices: Any) -> AsyncIterator[Worker]:
    """A worker without notifications that has just sent its last heartbeat for a while."""
    options = WorkerOptions(**{"heartbeat": brief(10), "drain": brief(10), **choices})
    connections = WorkerConnections(
        app.database_urls.url, NOWHERE, partial(open_resources, app.settings, app.database_urls.url)
    )
    async with asyncio.timeout(PATIENCE):
        async with Worker(app, options, connections) as worker:
            await until(sql, f"select heartbeat_at > started_at from duly.workers where {_is(worker)}")
            yield worker


def _is(worker: Worker) -> str:
    return f"worker_id = '{worker.worker_id}'"


async def until(sql: psycopg.Connection[Any], query: str) -> None:
    """Ask until the answer is yes."""
    async with asyncio.timeout(PATIENCE):
        while sql.execute(query).fetchone() != (True,):
            await asyncio.to_thread(lambda: None)


async def breathe() -> None:
    """Let the loop do what else there is to do."""
    turn = asyncio.get_running_loop().create_future()
    turn.get_loop().call_soon(turn.set_result, None)
    await turn


@asynccontextmanager
async def surviving(app: Duly, **choices: Any) -> AsyncIterator[Worker]:
    """A worker that does its work as before when the block is left."""
    if "test.well" not in app.registry:

        @app.job("test.well")
        async def well(key: str) -> str:
            return key

        @app.job("test.well_plainly")
        def well_plainly(key: str) -> str:
            return key

    async with working(app, **choices) as worker:
        yield worker
        for name in ("test.well", "test.well_plainly"):
            key = str(uuid.uuid4())
            handle = await app.registry.get(name).enqueue(key)
            assert await handle.result(PATIENCE) == key


async def work_off(app: Duly, attempts: int = 1, **choices: Any) -> Worker:
    """Work until so many attempts are settled."""
    async with working(app, **choices) as worker:
        await worker.loop_events.wait("settled", attempts)
    return worker


async def done(app: Duly, handle: Handle[Any], **choices: Any) -> JobSnapshot:
    """Work until this job has ended."""
    async with working(app, **choices):
        return await handle.wait(PATIENCE)


async def events(handle: Handle[Any]) -> list[str]:
    """The types of the events of an ended job."""
    return [event.event_type.removeprefix("job.") async for event in handle.events()]


async def lose_everything(app: Duly, sql: psycopg.Connection[Any]) -> None:
    """Declare every worker lost, and take over what they held."""
    sql.execute("update duly.workers set heartbeat_at = now() - interval '1 hour' where lost_at is null")
    while await Reaper(app).once() == timedelta(0):
        pass


async def claim_and_vanish(app: Duly, job_id: uuid.UUID) -> uuid.UUID:
    """Claim this job, the only one, by a worker that vanishes."""
    worker = WorkerIdentity(uuid.uuid4(), "gone", "h", 1, "0", ("q:default",), 1, brief(30))
    lane = {"lane": "q:default", "slots": 1, "after_org": uuid.UUID(int=0)}
    async with (await app.resources()).database.engine() as conn:
        await register(conn, worker)
        taken = await claims.claim_jobs(conn, worker_id=worker.worker_id, claim_id=uuid.uuid4(), **lane)
    assert [job.job_id for job in taken.jobs] == [job_id]
    return worker.worker_id


def worker_row(sql: psycopg.Connection[Any], column: str) -> Any:
    """What the database knows of the worker that came first."""
    row = sql.execute(f"select {column} from duly.workers order by started_at limit 1").fetchone()
    assert row
    return row[0]


def picture(sql: psycopg.Connection[Any]) -> list[Any]:
    """Everything there is to know of all jobs."""
    tables = (
        "job_states",
        "event_log",
        "result_snapshots",
        "ready",
        "scheduled",
        "artifacts",
        "dead_letters",
    )
    return [sql.execute(f"select * from duly.{t} order by 1, 2, 3").fetchall() for t in tables]
