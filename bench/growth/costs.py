"""What one job costs in CPU time and WAL, by the number of ended and of waiting jobs.

Every step runs with the product's own functions, and starts after a checkpoint: it writes the most images of
whole pages that a step can write.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg
from figures.meter import Cost, Meter
from figures.server import BenchServer

from duly import Actor, Duly, context
from duly.db.database import Database
from duly.db.pool import PoolSize
from duly.worker import claim as claims
from duly.worker import settle_store
from growth.fill import Say, fill_history, fill_ready, make_orgs, tidy

_ORGS = 20
_JOBS = """
select x.org_id, r.job_id
from (
    select (%(orgs)s::uuid[])[1 + n %% cardinality(%(orgs)s::uuid[])] as org_id,
           duly.uuid7_floor(now() - random() * interval '30 days') as low
    from generate_series(1, 2000) n
) x
cross join lateral (
    select job_id from duly.job_records r where r.org_id = x.org_id and r.job_id >= x.low
    order by job_id limit 1
) r
"""


class CostPoint(NamedTuple):
    """One database: ended and waiting jobs."""

    history: int
    waiting: int


class Counts(NamedTuple):
    """The rounds, and how often each step is measured in one."""

    rounds: int
    bulk: int
    lone: int
    reads: int


SIZES = {
    "full": (
        *(CostPoint(history, 10_000) for history in (10_000, 100_000, 1_000_000, 10_000_000)),
        CostPoint(10_000, 1_000_000),
    ),
    "medium": (
        *(CostPoint(history, 10_000) for history in (10_000, 100_000, 1_000_000)),
        CostPoint(10_000, 100_000),
    ),
    "small": (CostPoint(1_000, 1_000), CostPoint(3_000, 1_000), CostPoint(1_000, 3_000)),
}
COUNTS = {
    "full": Counts(3, 4_000, 500, 300),
    "medium": Counts(3, 4_000, 500, 300),
    "small": Counts(1, 1_000, 20, 20),
}


@dataclass
class Subject:
    """A filled database, an application and a worker's connection to it."""

    point: CostPoint
    counts: Counts
    app: Duly
    database: Database
    meter: Meter
    filled_in: float
    bytes: int
    jobs: Iterator[tuple[UUID, UUID]]
    orgs: Iterator[UUID]
    worker_id: UUID = field(default_factory=uuid4)
    after: UUID = field(default_factory=uuid4)
    taken: list[claims.Claim] = field(default_factory=list)
    cursors: dict[UUID, str | None] = field(default_factory=dict)
    costs: dict[str, list[Cost]] = field(default_factory=dict)

    async def round(self, *, warm_up: bool = False) -> None:
        """Measure every step once. Enqueued jobs are claimed and finished: the backlog stays constant."""
        bulk, lone, reads = (count // (10 if warm_up else 1) for count in self.counts[1:])
        for name, count, step in (
            ("enqueue, batches of 1,000", bulk, lambda: self.enqueue(bulk, 1_000)),
            ("claim, batches of 500", bulk, lambda: self.claim(bulk, 500)),
            ("finish, batches of 500", bulk, self.finish),
            ("enqueue, one", lone, lambda: self.enqueue(lone, 1)),
            ("claim, one", lone, lambda: self.claim(lone, 1)),
            ("finish, one", lone, self.finish),
            ("status poll", reads * 5, lambda: self.poll(reads * 5)),
            ("list page of 50", reads, lambda: self.list(reads)),
            ("feed page of 100", reads, lambda: self.read_feed(reads)),
        ):
            cost = await self._cost(count, step)
            if not warm_up:
                self.costs.setdefault(name, []).append(cost)

    async def _cost(self, count: int, step: Callable[[], Awaitable[None]]) -> Cost:
        self.meter.checkpoint(vacuum=False)
        self.meter.start()
        await step()
        return self.meter.cost(count)

    async def enqueue(self, jobs: int, batch: int) -> None:
        """Enqueue new jobs, org after org."""
        noop = self.app.registry.get("bench.noop")
        for _ in range(0, jobs, batch):
            with context(org_id=next(self.orgs), actor=Actor.system("bench")):
                await self.app.enqueue_many([noop.call(uuid4().int >> 80) for _ in range(min(batch, jobs))])

    async def claim(self, jobs: int, batch: int) -> None:
        """Claim jobs."""
        for _ in range(0, jobs, batch):
            async with self.database.engine_autocommit() as conn:
                taken = await claims.claim_jobs(
                    conn,
                    worker_id=self.worker_id,
                    claim_id=uuid4(),
                    lane="q:default",
                    slots=min(batch, jobs),
                    after_org=self.after,
                    gates=False,
                )
            assert taken.jobs
            self.after = taken.after_org
            self.taken.append(taken)

    async def finish(self) -> None:
        """Complete what was claimed."""
        while self.taken:
            jobs = self.taken.pop().jobs
            done, claim_ids = [(job, None) for job in jobs], {job.claim_id for job in jobs}
            async with self.database.engine_autocommit() as conn:
                if jobs[0].is_plain:
                    await settle_store.complete_plain(conn, done, claim_ids=claim_ids)
                else:
                    await settle_store.complete(conn, done, worker_id=self.worker_id, claim_ids=claim_ids)

    async def poll(self, times: int) -> None:
        """Read the status of jobs of every age."""
        for _ in range(times):
            await self.app.jobs.status(*next(self.jobs))

    async def list(self, times: int) -> None:
        """Read the newest page of an org."""
        for _ in range(times):
            page = await self.app.jobs.list(next(self.orgs), limit=50)
            assert page.jobs

    async def read_feed(self, times: int) -> None:
        """Read page after page of the feed of every org, from its beginning."""
        for _ in range(times):
            org = next(self.orgs)
            page = await self.app.feed.read(org, self.cursors.get(org))
            self.cursors[org] = page.after if page.more else None

    def figures(self) -> dict[str, Any]:
        """Return the medians of the rounds."""
        steps = {
            name: Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))._asdict()
            for name, costs in self.costs.items()
        }
        return {**self.point._asdict(), "filled_in": self.filled_in, "bytes": self.bytes, "steps": steps}


async def measure_costs(server: BenchServer, sizes: str, say: Say) -> list[dict[str, Any]]:
    """Fill a database for every size, measure them alternately, and return their figures."""
    async with AsyncExitStack() as stack:
        subjects = [
            await stack.enter_async_context(_subject(server, f"costs_{number}", point, COUNTS[sizes], say))
            for number, point in enumerate(SIZES[sizes])
        ]
        for subject in subjects:
            await subject.round(warm_up=True)
        for number in range(COUNTS[sizes].rounds):
            for subject in subjects:
                await subject.round()
            say(f"costs: round {number + 1} of {COUNTS[sizes].rounds} is done")
        return [subject.figures() for subject in subjects]


@asynccontextmanager
async def _subject(
    server: BenchServer, name: str, point: CostPoint, counts: Counts, say: Say
) -> AsyncIterator[Subject]:
    start, url = time.perf_counter(), server.create(name)
    try:
        say(f"{name}: {point.history:,} ended and {point.waiting:,} waiting jobs")
        orgs = make_orgs(url, _ORGS)
        fill_history(url, orgs, point.history, say)
        fill_ready(url, orgs, point.waiting, say)
        say("  vacuum, analyze, checkpoint")
        tidy(url)
        meter, app = Meter(url), Duly(database_url=url, blobs_url=str(server.home))

        @app.job("bench.noop")
        async def noop(number: int) -> None: ...

        size, seconds = meter.size(), time.perf_counter() - start
        say(f"{name}: filled in {seconds:.0f} s, {size / 2**20:,.0f} MiB")
        async with app, Database(url, size=PoolSize(1, 1), engine_only=True) as database:
            jobs = cycle(_some_jobs(url, orgs))
            yield Subject(point, counts, app, database, meter, seconds, size, jobs, cycle(orgs))
        meter.close()
    finally:
        server.drop(name)


def _some_jobs(url: str, orgs: list[UUID]) -> list[tuple[UUID, UUID]]:
    """Return the org and the id of jobs of every age."""
    with psycopg.connect(url) as conn:
        return conn.execute(_JOBS, {"orgs": orgs}).fetchall()
