"""Limits under load: many workers, many limits, and jobs that end in every way."""

from __future__ import annotations

import asyncio
import random
import uuid
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg

from duly import Context, Duly, Fail, Handle, RetryPolicy, Snooze, context
from duly.core.errors import AlreadyFinished
from duly.features.limits.service import Limits
from duly.maintenance.loop import run_chores
from duly.maintenance.reaper import Reaper
from tests.worker.blocking_jobs import (
    ADMIN,
    SOON,
    WHY,
    BlockingJobs,
    assert_completed,
    create_orgs,
    enqueue,
    fetch_value,
    running_counts,
    running_workers,
)

MOMENT = timedelta(milliseconds=5)


class TransientError(Exception):
    """An error that is retried."""


class MixedLoad:
    """Job types that end in every way; `interfere` changes limits, cancels jobs and loses workers."""

    def __init__(self, app: Duly, sql: psycopg.Connection, orgs: list[uuid.UUID]) -> None:
        self.app = app
        self.sql = sql
        self.orgs = orgs
        self.rng = random.Random(7)
        self.jobs = [self._declare(name) for name in ("load.first", "load.second", "load.third")]
        types = [job.name for job in self.jobs]
        self.scopes = [(org, t) for org in (*orgs, None) for t in (*types, None) if org or t]
        self.handles: list[Handle[Any]] = []
        self.held = asyncio.Event()

        @app.job("load.hang_once", retry=RetryPolicy(max_attempts=4, base=MOMENT, cap=MOMENT))
        async def hang_once(ctx: Context) -> None:
            if ctx.attempt == 1:  # hangs until its worker is lost, so that one lease is lost for certain
                self.held.set()
                await asyncio.Event().wait()

        self.hang_once = hang_once

    def _declare(self, name: str) -> Any:
        @self.app.job(name, retry=RetryPolicy(max_attempts=4, base=MOMENT, cap=MOMENT))
        async def work(ctx: Context, n: int) -> int:
            async with ctx.session() as conn:
                await conn.execute("select 1")
            match self.rng.randrange(6):
                case 0:
                    raise TransientError
                case 1:
                    raise Snooze(MOMENT)
                case 2:
                    raise Fail("never")
                case 3:
                    await ctx.partial({"n": n})
                    ctx.check_canceled()
            return n

        return work

    async def enqueue(self) -> None:
        with context(org_id=self.orgs[0], actor=ADMIN):
            self.hanging = await self.hang_once.enqueue()
        for org in self.orgs:
            with context(org_id=org, actor=ADMIN):
                for job in self.jobs:
                    self.handles += await self.app.enqueue_many([job.call(n) for n in range(25)])

    async def interfere(self) -> None:
        limits = Limits(self.app)
        await self.held.wait()
        for n in range(60):
            change = self.rng.choice(
                [{"max_running": 1}, {"max_running": 3}, {"max_running": None}, {"starts_per_second": 200.0}]
            )
            await limits.set(*self.rng.choice(self.scopes), **change, **WHY)
            with suppress(AlreadyFinished), context(actor=ADMIN):
                await self.rng.choice(self.handles).cancel("under load")
            if n % 10 == 5:
                self.sql.execute(
                    """update duly.workers set lost_at = now() where lost_at is null and worker_id =
                       (select worker_id from duly.claims order by not %s = any(job_ids) limit 1)""",
                    [self.hanging.job_id],
                )
                await Reaper(self.app).once()

    async def wait(self) -> None:
        for scope in self.scopes:
            await Limits(self.app).set(*scope, max_running=2, starts_per_second=None, **WHY)
        for handle in (self.hanging, *self.handles):
            await handle.wait(90)


async def test_running_counts_return_to_zero_after_retries_cancels_and_lost_leases(
    app: Duly, sql: psycopg.Connection
) -> None:
    """With retries, failures, cancels, snoozes, lost leases, and limits that change meanwhile."""
    load, stop = MixedLoad(app, sql, await create_orgs(app, 5)), asyncio.Event()
    async with running_workers(app, 3, slots=8, poll=SOON, heartbeat=SOON):
        reaping = asyncio.create_task(run_chores([Reaper(app, every=SOON)], stop))
        await load.enqueue()
        await load.interfere()
        await load.wait()
        stop.set()
        await reaping
    assert running_counts(sql) == {0}
    for empty in ("claims", "ready", "scheduled", "job_states where finished_at is null"):
        assert fetch_value(sql, f"select count(*) from duly.{empty}") == 0, empty
    for event in ("lease_lost", "retried", "snoozed", "canceled", "failed", "completed"):
        query = "select count(*) from duly.job_events where event_type = %s"
        assert fetch_value(sql, query, f"job.{event}") > 0, event


async def test_many_workers_and_many_limits_never_deadlock(app: Duly, sql: psycopg.Connection) -> None:
    blocking, handles = BlockingJobs(app), []
    blocking.release.set()
    orgs = await create_orgs(app, 6)
    for org in orgs:
        await Limits(app).set(org, max_running=3, **WHY)
        await Limits(app).set(org, "site.dig", max_running=2, **WHY)
    await Limits(app).set(job_type="site.ship", max_running=6, **WHY)
    async with running_workers(app, 4, slots=6, poll=SOON):
        for org in orgs:
            for job in (blocking.build, blocking.dig, blocking.ship):
                handles += await enqueue(job, org, range(40))
        await assert_completed(handles)
    assert running_counts(sql) == {0}
    sql.execute("select pg_stat_force_next_flush()")
    assert fetch_value(sql, "select deadlocks from pg_stat_database where datname = current_database()") == 0
