"""Measure claims and completions on all databases of an axis alternately: a slow minute affects all.

Each repetition is committed. Afterwards each claimed job is replaced by a new job of the same org, outside of
the measured time, so that the backlog and its orgs stay constant.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
from figures.numbers import percentiles, slope
from figures.server import BenchServer

from duly import Duly
from duly.core.decide import JobState
from duly.core.outcome import Completed
from duly.core.states import Status
from duly.db.clock import Clock
from duly.db.database import Database
from duly.worker import claim as claims
from duly.worker import workers_store as workers
from duly.worker.settle_writer import FinishedAttempt, RetryBudget, SettleWriter
from growth.axes import Axis, Point
from growth.fill import fill_history, fill_ready, make_orgs, refill, tidy

CLAIM = 100
QUEUE = "q:default"
_ROUNDS = 10
_WARM = 3
Say = Callable[[str], None]


@dataclass
class Subject:
    """A filled database, and a worker that claims from it."""

    point: Point
    database: Database
    writer: SettleWriter
    aside: psycopg.Connection[Any]
    filled_in: float
    worker_id: UUID = field(default_factory=uuid4)
    after: UUID = field(default_factory=uuid4)
    claim_ms: list[float] = field(default_factory=list)
    finish_ms: list[float] = field(default_factory=list)

    async def introduce(self) -> None:
        """Register the worker."""
        identity = workers.WorkerIdentity(
            self.worker_id, "bench", "bench", os.getpid(), "0", (QUEUE,), CLAIM, timedelta(hours=1)
        )
        async with self.database.engine() as conn:
            await workers.register(conn, identity)

    async def repeat(self, times: int) -> None:
        """Claim and complete this many times, after some warm-ups."""
        for number in range(-_WARM, times):
            claim_ms, finish_ms = await self._once()
            if number >= 0:
                self.claim_ms.append(claim_ms)
                self.finish_ms.append(finish_ms)

    async def _once(self) -> tuple[float, float]:
        claim_id, start = uuid4(), time.perf_counter()
        async with self.database.engine_autocommit() as conn:
            taken = await claims.claim_jobs(
                conn,
                worker_id=self.worker_id,
                claim_id=claim_id,
                lane=QUEUE,
                slots=CLAIM,
                after_org=self.after,
            )
        claimed, self.after = time.perf_counter(), taken.after_org
        assert len(taken.jobs) == CLAIM, f"{len(taken.jobs)} jobs were taken"
        ended = [
            FinishedAttempt(
                job, JobState(Status.RUNNING, job.attempt, job.returned), Completed(), self.worker_id
            )
            for job in taken.jobs
        ]
        begun = time.perf_counter()
        written = await self.writer.write(ended, {job.claim_id for job in taken.jobs})
        done = time.perf_counter()
        assert not written.lost, f"{len(written.lost)} jobs were not finished"
        refill(self.aside, [job.org_id for job in taken.jobs])
        return (claimed - start) * 1000, (done - begun) * 1000

    def figures(self) -> dict[str, Any]:
        """Return the percentiles."""
        return {
            **self.point._asdict(),
            "filled_in": self.filled_in,
            "repetitions": len(self.claim_ms),
            "claim_ms": percentiles(self.claim_ms),
            "finish_ms": percentiles(self.finish_ms),
        }


async def measure(server: BenchServer, axis: Axis, repetitions: int, say: Say) -> dict[str, Any]:
    """Measure every point of an axis, and compute the slope."""
    async with AsyncExitStack() as stack:
        subjects = [
            await stack.enter_async_context(_subject(server, f"{axis.name}_{number}", point, say))
            for number, point in enumerate(axis.points)
        ]
        for turn in range(_ROUNDS):
            for subject in subjects:
                await subject.repeat((repetitions + turn) // _ROUNDS)
    points = [subject.figures() for subject in subjects]
    slopes = {verb: growth(points, verb) for verb in ("claim_ms", "finish_ms")}
    return {"axis": axis.name, "title": axis.title, "points": points, "growth": slopes}


@asynccontextmanager
async def _subject(server: BenchServer, name: str, point: Point, say: Say) -> AsyncIterator[Subject]:
    start, url = time.perf_counter(), server.create(name)
    try:
        orgs = make_orgs(url, point.orgs)
        if point.history:
            fill_history(url, orgs, point.history, say)
        fill_ready(url, orgs, point.backlog, say)
        tidy(url)
        seconds = time.perf_counter() - start
        say(f"{name}: {point.backlog:,} ready, {point.orgs:,} orgs, {point.history:,} ended: {seconds:.0f} s")
        async with Database(url, engine_only=True) as database:
            with psycopg.connect(url, autocommit=True) as aside:
                writer = SettleWriter(Duly(database_url=url), database, Clock(), RetryBudget(1.0, 1))
                subject = Subject(point, database, writer, aside, seconds)
                await subject.introduce()
                yield subject
    finally:
        server.drop(name)


def growth(points: Sequence[dict[str, Any]], verb: str) -> dict[str, dict[str, float]]:
    """Return per percentile the additional milliseconds at ten times the size, and largest / smallest."""
    found = {}
    for name in ("p50", "p95", "p99"):
        line = [(math.log10(point["along"]), point[verb][name]) for point in points]
        found[name] = {"ms_per_tenfold": slope(line), "ratio": line[-1][1] / line[0][1]}
    return found


def tell(text: str) -> None:
    """Print progress to stderr."""
    print(text, file=sys.stderr, flush=True)
