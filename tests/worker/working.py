"""Run workers in tests, and wait for their jobs."""

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

RETRY_AT_ONCE = RetryPolicy(max_attempts=5, delays=(timedelta(milliseconds=1),))
"""Five attempts without a delay."""
TWO_ATTEMPTS = RetryPolicy(max_attempts=2, delays=(timedelta(milliseconds=1),))
ONE_ATTEMPT = RetryPolicy(max_attempts=1)
UNREACHABLE_URL = "postgresql://127.0.0.1:1/nowhere"
WAIT_TIMEOUT = 60
"""Seconds that a test waits for a job or a condition before it fails."""


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


@asynccontextmanager
async def working(app: Duly, **options: Any) -> AsyncIterator[Worker]:
    """Run a worker for the block, which fails after `WAIT_TIMEOUT` seconds."""
    async with asyncio.timeout(WAIT_TIMEOUT):
        async with app.worker(**{"drain": seconds(10), **options}) as worker:
            yield worker


@asynccontextmanager
async def silent_worker(app: Duly, sql: psycopg.Connection[Any], **options: Any) -> AsyncIterator[Worker]:
    """Run a worker without LISTEN connection whose next heartbeat is ten seconds away."""
    worker_options = WorkerOptions(**{"heartbeat": seconds(10), "drain": seconds(10), **options})
    connections = WorkerConnections(
        app.database_urls.url, UNREACHABLE_URL, partial(open_resources, app.settings, app.database_urls.url)
    )
    async with asyncio.timeout(WAIT_TIMEOUT):
        async with Worker(app, worker_options, connections) as worker:
            await until(
                sql,
                f"select heartbeat_at > started_at from duly.workers where worker_id = '{worker.worker_id}'",
            )
            yield worker


async def until(sql: psycopg.Connection[Any], query: str) -> None:
    """Run the query until it returns true."""
    async with asyncio.timeout(WAIT_TIMEOUT):
        while sql.execute(query).fetchone() != (True,):
            await asyncio.to_thread(lambda: None)


async def yield_to_loop() -> None:
    """Let the event loop run its other callbacks once."""
    turn = asyncio.get_running_loop().create_future()
    turn.get_loop().call_soon(turn.set_result, None)
    await turn


@asynccontextmanager
async def surviving_worker(app: Duly, **options: Any) -> AsyncIterator[Worker]:
    """Run a worker, and check after the block that it still completes async and sync jobs."""
    if "test.echo_async" not in app.registry:

        @app.job("test.echo_async")
        async def echo_async(key: str) -> str:
            return key

        @app.job("test.echo_sync")
        def echo_sync(key: str) -> str:
            return key

    async with working(app, **options) as worker:
        yield worker
        for name in ("test.echo_async", "test.echo_sync"):
            key = str(uuid.uuid4())
            handle = await app.registry.get(name).enqueue(key)
            assert await handle.result(WAIT_TIMEOUT) == key


async def settle_attempts(app: Duly, attempts: int = 1, **options: Any) -> Worker:
    """Run a worker until it has settled this many attempts."""
    async with working(app, **options) as worker:
        await worker.loop_events.wait("settled", attempts)
    return worker


async def run_until_ended(app: Duly, handle: Handle[Any], **options: Any) -> JobSnapshot:
    """Run a worker until the job has ended; return the job."""
    async with working(app, **options):
        return await handle.wait(WAIT_TIMEOUT)


async def event_types(handle: Handle[Any]) -> list[str]:
    """Return the event types of an ended job, without the prefix `job.`."""
    return [event.event_type.removeprefix("job.") async for event in handle.events()]


async def lose_all_workers(app: Duly, sql: psycopg.Connection[Any]) -> None:
    """Declare every worker lost, and let the reaper take over their claims."""
    sql.execute("update duly.workers set heartbeat_at = now() - interval '1 hour' where lost_at is null")
    while await Reaper(app).once() == timedelta(0):
        pass


async def claim_and_vanish(app: Duly, job_id: uuid.UUID) -> uuid.UUID:
    """Claim the only queued job with a worker that then crashes; return the id of the worker."""
    worker = WorkerIdentity(uuid.uuid4(), "crashed", "h", 1, "0", ("q:default",), 1, seconds(30))
    lane = {"lane": "q:default", "slots": 1, "after_org": uuid.UUID(int=0)}
    async with (await app.resources()).database.engine() as conn:
        await register(conn, worker)
        taken = await claims.claim_jobs(conn, worker_id=worker.worker_id, claim_id=uuid.uuid4(), **lane)
    assert [job.job_id for job in taken.jobs] == [job_id]
    return worker.worker_id


def worker_row(sql: psycopg.Connection[Any], column: str) -> Any:
    """Return a column of the worker that started first."""
    row = sql.execute(f"select {column} from duly.workers order by started_at limit 1").fetchone()
    assert row
    return row[0]


def dump_job_tables(sql: psycopg.Connection[Any]) -> list[Any]:
    """Return the rows of all tables that contain the state of jobs."""
    tables = (
        "job_records",
        "job_states",
        "job_ends",
        "event_batches",
        "claims",
        "event_log",
        "result_snapshots",
        "ready",
        "scheduled",
        "artifacts",
        "dead_letters",
        "active_runs",
        "key_ledger",
    )
    return [sql.execute(f"select * from duly.{t} order by 1, 2, 3").fetchall() for t in tables]
