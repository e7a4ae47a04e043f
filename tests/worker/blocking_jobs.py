"""Jobs that block until a test releases them, and helpers for tests of limits."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import psycopg

from duly import Actor, Duly, Handle, context
from duly.worker.worker import Worker

ADMIN = Actor.user("admin")
WHY: dict[str, Any] = {"actor": ADMIN, "reason": "because"}
SOON = timedelta(milliseconds=20)
NEVER = timedelta(minutes=10)
"""A poll interval so long that a worker only continues on a notification or after a full claim."""


class BlockingJobs:
    """Three job types that block until `release` is set: two in q:default, one in q:exports."""

    def __init__(self, app: Duly) -> None:
        self.app = app
        self.running: Counter[tuple[str, str]] = Counter()
        self.max_running: Counter[str] = Counter()
        """The maximum of concurrent runs: by org, by job type, by both."""
        self.started: list[int] = []
        self.release = asyncio.Event()
        self._changed = asyncio.Condition()
        self.build = self._declare("site.build")
        self.dig = self._declare("site.dig")
        self.ship = self._declare("site.ship", category="transfer")

    def _declare(self, name: str, **options: Any) -> Any:
        @self.app.job(name, **options)
        async def work(org: str, n: int) -> int:
            await self._record_start(org, name, n)
            try:
                await self.release.wait()
                # Take some time, so that runs beyond a limit would overlap.
                async with self.app.tenant_session(uuid.UUID(org)) as conn:
                    await conn.execute("select 1")
            finally:
                self.running[org, name] -= 1
            return n

        return work

    async def _record_start(self, org: str, name: str, n: int) -> None:
        self.running[org, name] += 1
        for scope, count in {
            org: sum(n for (o, _), n in self.running.items() if o == org),
            name: sum(n for (_, t), n in self.running.items() if t == name),
            f"{org} {name}": self.running[org, name],
        }.items():
            self.max_running[scope] = max(self.max_running[scope], count)
        self.started.append(n)
        async with self._changed:
            self._changed.notify_all()

    async def wait_until_started(self, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.started) >= count)


async def create_orgs(app: Duly, count: int) -> list[uuid.UUID]:
    orgs = [uuid.uuid4() for _ in range(count)]
    for org in orgs:
        await app.create_org(org, "Acme")
    return orgs


async def create_paused_orgs(
    app: Duly, blocking: BlockingJobs, sql: psycopg.Connection[Any], count: int
) -> None:
    """Create paused orgs, each with one queued job."""
    orgs = await create_orgs(app, count)
    sql.execute(
        """insert into duly.gates (org_id, job_type, paused_at, paused_by)
           select org_id, '', now(), 'user:admin' from unnest(%s::uuid[]) org_id""",
        [orgs],
    )
    for start in range(0, count, 50):
        await asyncio.gather(*(enqueue(blocking.build, org, [1]) for org in orgs[start : start + 50]))


async def enqueue(job: Any, org: uuid.UUID, numbers: Sequence[int], **options: Any) -> list[Handle[int]]:
    with context(org_id=org, actor=ADMIN):
        return await job.app.enqueue_many([job.options(**options).call(str(org), n) for n in numbers])


async def assert_completed(handles: Sequence[Handle[Any]]) -> None:
    for handle in handles:
        assert (await handle.wait(60)).status == "completed"


@asynccontextmanager
async def running_workers(app: Duly, workers: int = 1, **options: Any) -> AsyncIterator[list[Worker]]:
    running = [app.worker(**{"slots": 30, **options}) for _ in range(workers)]
    await asyncio.gather(*(worker.start() for worker in running))
    try:
        yield running
    finally:
        await asyncio.gather(*(worker.stop() for worker in running))


async def wait_until_idle(*workers: Worker) -> None:
    """Wait until each worker has completed a whole claim round without finding a job."""
    for worker in workers:
        idle = worker.loop_events.counts["idle"]
        await worker.loop_events.wait("idle", idle + 2)


def running_counts(sql: psycopg.Connection[Any]) -> set[int]:
    return {row[0] for row in sql.execute("select running from duly.gates").fetchall()}


def fetch_value(sql: psycopg.Connection[Any], query: str, *values: Any) -> Any:
    row = sql.execute(query, values).fetchone()
    assert row
    return row[0]
