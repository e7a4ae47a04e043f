"""For tests of gates: handlers that note who is inside and can be held there, and what all tests do."""

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
"""A worker that polls so seldom goes on only if it knows by itself that there is more."""


class Site:
    """Three job types: two of q:default, one of q:exports."""

    def __init__(self, app: Duly) -> None:
        self.app = app
        self.inside: Counter[tuple[str, str]] = Counter()
        self.most: Counter[str] = Counter()
        """How many were ever inside at a time: by org, by job type, by both."""
        self.entered: list[int] = []
        self.doors = asyncio.Event()
        self._news = asyncio.Condition()
        self.build = self._declare("site.build")
        self.dig = self._declare("site.dig")
        self.ship = self._declare("site.ship", category="transfer")

    def _declare(self, name: str, **options: Any) -> Any:
        @self.app.job(name, **options)
        async def work(org: str, n: int) -> int:
            await self._enter(org, name, n)
            try:
                await self.doors.wait()
                # Something that takes a while, so that too many would be seen.
                async with self.app.tenant_session(uuid.UUID(org)) as conn:
                    await conn.execute("select 1")
            finally:
                self.inside[org, name] -= 1
            return n

        return work

    async def _enter(self, org: str, name: str, n: int) -> None:
        self.inside[org, name] += 1
        for what, many in {
            org: sum(count for (o, _), count in self.inside.items() if o == org),
            name: sum(count for (_, t), count in self.inside.items() if t == name),
            f"{org} {name}": self.inside[org, name],
        }.items():
            self.most[what] = max(self.most[what], many)
        self.entered.append(n)
        async with self._news:
            self._news.notify_all()

    async def until_entered(self, count: int) -> None:
        async with self._news:
            await self._news.wait_for(lambda: len(self.entered) >= count)


async def make_orgs(app: Duly, count: int) -> list[uuid.UUID]:
    made = [uuid.uuid4() for _ in range(count)]
    for org in made:
        await app.create_org(org, "Acme")
    return made


async def shut_orgs(app: Duly, site: Site, sql: psycopg.Connection[Any], count: int) -> None:
    """Orgs that are paused, each with a job."""
    shut = await make_orgs(app, count)
    sql.execute(
        """insert into duly.gates (org_id, job_type, paused_at, paused_by)
           select org_id, '', now(), 'user:admin' from unnest(%s::uuid[]) org_id""",
        [shut],
    )
    for some in range(0, count, 50):
        await asyncio.gather(*(enqueue(site.build, one_of, [1]) for one_of in shut[some : some + 50]))


async def enqueue(job: Any, org: uuid.UUID, numbers: Sequence[int], **options: Any) -> list[Handle[int]]:
    with context(org_id=org, actor=ADMIN):
        return await job.app.enqueue_many([job.options(**options).call(str(org), n) for n in numbers])


async def completed(handles: Sequence[Handle[Any]]) -> None:
    for handle in handles:
        assert (await handle.wait(60)).status == "completed"


@asynccontextmanager
async def working(app: Duly, workers: int = 1, **choices: Any) -> AsyncIterator[list[Worker]]:
    made = [app.worker(**{"slots": 30, **choices}) for _ in range(workers)]
    await asyncio.gather(*(worker.start() for worker in made))
    try:
        yield made
    finally:
        await asyncio.gather(*(worker.stop() for worker in made))


async def looked(*workers: Worker) -> None:
    """Until each has looked once more from the beginning, and found nothing to take."""
    for worker in workers:
        seen = worker.loop_events.counts["idle"]
        await worker.loop_events.wait("idle", seen + 2)


def counters(sql: psycopg.Connection[Any]) -> set[int]:
    return {row[0] for row in sql.execute("select running from duly.gates").fetchall()}


def one(sql: psycopg.Connection[Any], query: str, *values: Any) -> Any:
    row = sql.execute(query, values).fetchone()
    assert row
    return row[0]
