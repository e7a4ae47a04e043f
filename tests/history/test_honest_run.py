"""Many jobs on real workers, with clients, observers and readers: every promise holds, with evidence."""

from __future__ import annotations

import asyncio
import random
import threading
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from duly import Actor, Context, Duly, Fail, Handle, Job, Snooze, context, errors
from duly.features.events.service import Feed
from duly.features.schedules.service import Schedules
from duly.testing import FreshDatabase
from duly.testing.history import (
    Cancellation,
    Effect,
    FeedRead,
    IsolationProbe,
    RecordedSubmission,
    Recorder,
    StreamRead,
    by_field,
    check,
    export,
    load,
    watch,
)
from tests.mutants.stage import answer
from tests.worker.working import RETRY_AT_ONCE, TWO_ATTEMPTS, WAIT_TIMEOUT, seconds, until, working

USER = Actor.user("u1")
QUIET = """
    select not exists (select from duly.ready) and not exists (select from duly.scheduled)
       and not exists (select from duly.jobs where finished_at is null)
"""


def declare(app: Duly, log: Recorder) -> list[Job[[int], Any]]:
    """Declare one job type of each kind."""

    @app.job("storm.effect", retry=RETRY_AT_ONCE)
    async def effect(ctx: Context, n: int) -> int:
        job = ctx.job
        log.write(Effect("outside", job.org_id, job.job_id, job.attempt, f"key-{job.job_id}"))
        async with ctx.transaction() as conn:
            await conn.execute(
                "insert into effects values (%s, %s, %s)", [job.org_id, job.job_id, job.attempt]
            )
            if n % 3 == 0 and ctx.attempt == 1:
                raise ConnectionError("the provider hung up")
        return n

    @app.job("storm.chunks", retry=RETRY_AT_ONCE)
    async def chunks(ctx: Context, n: int) -> dict[str, Any]:
        async for chunk in ctx.chunks(range(3)):
            async with chunk:
                chunk.result = chunk.item
            ctx.progress(10 * chunk.item)
            if chunk.item == 1 and ctx.job.attempt == 1:
                raise TimeoutError("slow")
        return await ctx.results()

    @app.job("storm.dies", retry=TWO_ATTEMPTS)
    async def dies(n: int) -> None:
        raise RuntimeError(f"{n} is poison")

    @app.job("storm.naps", retry=RETRY_AT_ONCE)
    async def naps(ctx: Context, n: int) -> int:
        if n % 4 == 0:
            raise Fail("no consent", code="consent.missing", blocked=True)
        if ctx.job.returned < 2:
            raise Snooze(0.01, "not yet")
        return n

    return [effect, chunks, dies, naps]


async def client(
    name: str, log: Recorder, jobs: list[Job[[int], Any]], org: uuid.UUID, dice: random.Random
) -> list[Handle[Any]]:
    """Submit jobs, some of them twice, and cancel some."""
    found: list[Handle[Any]] = []
    for _ in range(30):
        job, n = dice.choice(jobs), dice.randrange(12)
        key = f"{job.name}-{n}"
        begun = log.begin(RecordedSubmission(name, org, key, job.name, "unknown"))
        handle = await job.options(idempotency_key=key).enqueue(n)
        log.write(replace(begun, answer="ok", job_id=handle.job_id))
        found.append(handle)
        if dice.random() < 0.2:
            await take_back(name, log, handle)
    return found


async def take_back(name: str, log: Recorder, handle: Handle[Any]) -> None:
    begun = log.begin(Cancellation(name, handle.org_id, handle.job_id, "unknown"))
    try:
        status = await handle.cancel("enough")
    except errors.AlreadyFinished:
        log.write(replace(begun, answer="fail"))
    else:
        log.write(replace(begun, answer="ok", status=status.value))


async def reader(log: Recorder, handle: Handle[Any]) -> None:
    events = [(event.event_seq, event.event_type) async for event in handle.events()]
    log.write(StreamRead("r1", handle.org_id, handle.job_id, tuple(events), to_the_end=True))


async def feed_reader(app: Duly, log: Recorder, org: uuid.UUID, quiet: asyncio.Event, sql: Any) -> None:
    """Read the feed all the time, and once more when the system is idle."""
    after: str | None = None
    events: list[tuple[uuid.UUID, int]] = []
    last = more = False
    while not last or more:
        if not last and quiet.is_set():
            [now] = sql.execute("select pg_current_xact_id()::text").fetchone()
            await until(sql, f"select pg_snapshot_xmin(pg_current_snapshot()) > '{now}'::xid8")
            last = True
        page = await Feed(app).read(org, after)
        events += [(event.job_id, event.event_seq) for event in page.events]
        after, more = page.after, page.more
    log.write(FeedRead("f1", org, tuple(events)))


@asynccontextmanager
async def observed(url: str, path: Path) -> AsyncIterator[None]:
    """Run two observers."""
    stop = threading.Event()
    threads = [
        threading.Thread(
            target=watch, args=(url, path), kwargs={"name": f"o{n}", "stop": stop, "pause": 0.02}
        )
        for n in range(2)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            await asyncio.to_thread(thread.join)


async def test_a_correct_run_violates_no_promise_and_has_evidence_for_each(
    fresh: FreshDatabase, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    pooled = fresh.direct_url if fresh.url != fresh.direct_url else None
    app = Duly(
        database_url=fresh.url,
        database_direct_url=pooled,
        blobs_url=str(tmp_path / "blobs"),
        maintenance=True,
    )
    sql.execute(
        "create table effects (org_id uuid, job_id uuid, attempt int); grant all on effects to duly_tenant"
    )
    path, org, other = tmp_path / "log", uuid.uuid4(), uuid.uuid4()
    log, quiet = Recorder(path), asyncio.Event()
    jobs = declare(app, log)

    @app.job("storm.tick", schedulable=True)
    async def tick() -> None: ...

    async with app, observed(fresh.direct_url, path):
        for one in (org, other):
            await app.create_org(one, "Acme")
        await Schedules(app).create(org, "often", cron="* * * * * *", job_type="storm.tick", actor=USER)
        feed = asyncio.create_task(feed_reader(app, log, org, quiet, sql))
        with context(org_id=org, actor=USER):
            async with working(app, poll=seconds(0.05)):
                submitted = await asyncio.gather(
                    *(client(f"c{n}", log, jobs, org, random.Random(n)) for n in range(3))
                )
                handles = [handle for batch in submitted for handle in batch]
                await asyncio.gather(*(reader(log, handle) for handle in handles[:20]))
                for handle in handles:
                    await handle.wait(WAIT_TIMEOUT)
                await until(sql, "select count(*) > 1 from duly.schedule_ticks")
                await Schedules(app).delete(org, "often", USER, "it is over")
                await until(sql, QUIET)
        quiet.set()
        await feed
        strangers = [app.handle(job_id, org_id=other) for job_id in (handles[0].job_id, uuid.uuid4())]
        lines = [(await answer(s.status())).replace(str(s.job_id), "<id>") for s in strangers]
        log.write(IsolationProbe(other, "handle.status()", *lines))
    for effect in sql.execute("select org_id, job_id, attempt from effects").fetchall():
        log.write(Effect("transaction", *effect))
    verdict = check(
        export(sql, required_effects={"storm.effect": ("transaction", "outside")}, **by_field(load([path])))
    )
    assert verdict.holds, verdict.table()
    assert verdict.without_evidence == set()
