"""Short deterministic scenarios. Without a bug every promise holds in each of them."""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import psycopg

from duly import Context, Fail, RetryPolicy, Snooze
from duly.core.decide import JobState, decide
from duly.core.outcome import ErrorInfo, Retried
from duly.core.states import Status
from duly.features.schedules.scheduler import Scheduler
from duly.features.schedules.service import Schedules
from duly.maintenance.reaper import Reaper
from duly.maintenance.reconciler import Reconciler
from duly.testing.history import IsolationProbe
from duly.worker import claim as claims
from duly.worker import settle_store as work
from tests.features.schedules.scheduler_clock import MINUTE, NOON, Clock
from tests.mutants.plain_scenario import plain_path
from tests.mutants.stage import USER, Stage, answer
from tests.worker.working import (
    ONE_ATTEMPT,
    RETRY_AT_ONCE,
    TWO_ATTEMPTS,
    lose_all_workers,
    seconds,
    silent_worker,
    working,
)

Scenario = Callable[[Stage], Awaitable[None]]
QUICK: dict[str, Any] = {"poll": seconds(0.02)}


async def mixture(stage: Stage) -> None:
    """Run jobs that end in every way, each submitted twice, read by streams and a feed."""
    app = stage.app

    @app.job("mix.chunks")
    async def chunks(ctx: Context) -> int:
        stage.act_outside(ctx)
        async for chunk in ctx.chunks(range(3)):
            async with chunk:
                chunk.result = chunk.item
        async with ctx.transaction() as conn:
            await stage.write_effect(ctx, conn)
        return 3

    @app.job("mix.backward")
    async def backward(ctx: Context) -> None:
        await ctx.services.progress.write_now(work.ProgressUpdate(ctx.job, 60, "most of it"))
        await ctx.services.progress.write_now(work.ProgressUpdate(ctx.job, 20, "less", checkpoint={"at": 1}))

    @app.job("mix.breaks", retry=TWO_ATTEMPTS)
    async def breaks(ctx: Context) -> None:
        await ctx.partial({"n": ctx.attempt}, percent=10 * ctx.attempt)
        raise ConnectionError("the provider hung up")

    @app.job("mix.refused")
    async def refused(ctx: Context) -> None:
        raise Fail("no consent", code="consent.missing", blocked=True)

    @app.job("mix.later")
    async def later(ctx: Context) -> str:
        if ctx.job.attempt == 1:
            raise Snooze(3600, "not yet")
        return "done"

    stage.required_effects |= {"mix.chunks": ("transaction", "outside")}
    jobs = [chunks, backward, breaks, refused, later]
    handles = [await stage.ask(job, key=job.name) for job in jobs for _ in range(2)]
    handles += await stage.ask_many(refused, (), keys=["bulk-1", "bulk-2", "bulk-3"])
    await stage.cancel(withdrawn := await stage.ask(chunks, key="withdrawn"))
    stage.observe()
    async with working(app, **QUICK) as worker:
        await stage.rest(worker)
    handles += [await stage.ask(job, key=job.name) for job in jobs]  # the key outlives the job
    stage.observe()
    for handle in (*handles[: 2 * len(jobs) : 2], withdrawn):
        await stage.read_stream(handle)
    await stage.read_feed_to_its_end()


async def zombies(stage: Stage) -> None:
    """Let two attempts outlive their lease: one writes to a queued job, one after the next attempt began."""
    started: dict[tuple[str, int], asyncio.Event] = defaultdict(asyncio.Event)
    go: dict[tuple[str, int], asyncio.Event] = defaultdict(asyncio.Event)
    app = stage.app

    async def wait(ctx: Context) -> None:
        name = (ctx.job.job_type, ctx.job.attempt)
        started[name].set()
        await go[name].wait()

    @app.job("zombie.chunk", retry=RETRY_AT_ONCE)
    async def chunk(ctx: Context) -> None:
        if ctx.job.attempt == 1:
            await wait(ctx)
            await ctx.partial({"late": True}, percent=50)

    @app.job("zombie.finish", retry=RETRY_AT_ONCE)
    async def finish(ctx: Context) -> int:
        await wait(ctx)
        async with ctx.transaction() as conn:
            await stage.write_effect(ctx, conn)
        return ctx.job.attempt

    stage.required_effects |= {"zombie.finish": ("transaction",)}
    for job in (chunk, finish):
        await stage.ask(job, key=job.name)
    async with silent_worker(app, stage.sql, drain=seconds(0)) as old:
        await started["zombie.chunk", 1].wait()
        await started["zombie.finish", 1].wait()
        await lose_all_workers(app, stage.sql)
        stage.observe()
        go["zombie.chunk", 1].set()
        await old.loop_events.wait("settled", 1)
        stage.observe()
        async with working(app, **QUICK) as new:
            await started["zombie.finish", 2].wait()
            go["zombie.finish", 1].set()
            await old.loop_events.wait("settled", 2)
            stage.observe()
            go["zombie.finish", 2].set()
            await stage.rest(new)
    stage.observe()


async def crashes(stage: Stage) -> None:
    """Let the workers of a job die after the claim: two attempts, then it is dead."""

    @stage.app.job("crash.poison", retry=TWO_ATTEMPTS)
    async def poison() -> str:
        return "survived"

    await stage.ask(poison, key="poison")
    for _ in range(4):
        await _claim_and_die(stage)
        await Reaper(stage.app).once()
        stage.observe()
    async with working(stage.app, **QUICK) as worker:
        await stage.rest(worker)


async def _claim_and_die(stage: Stage) -> None:
    async with (await stage.app.resources()).database.engine() as conn:
        await claims.claim_jobs(
            conn,
            worker_id=uuid.uuid4(),
            claim_id=uuid.uuid4(),
            lane="q:default",
            slots=1,
            after_org=uuid.UUID(int=0),
        )


async def second_thoughts(stage: Stage) -> None:
    """Settle an attempt again, after the job has ended. It has a state, because it has an identity."""
    held: list[claims.ClaimedJob] = []

    @stage.app.job("doubt.ends")
    async def ends(ctx: Context) -> str:
        held.append(ctx.job)
        return "done"

    await stage.ask(ends.options(run_identity="doubt"), key="doubt")
    async with working(stage.app, **QUICK) as worker:
        await stage.rest(worker)
    stage.observe()
    hold = JobState(Status.RUNNING, held[0].attempt)
    again = decide(hold, Retried(ErrorInfo("in.doubt", "no answer")), RetryPolicy(), datetime.now(UTC), 0.5)
    async with (await stage.app.resources()).database.engine() as conn:
        await work.settle(conn, [(held[0], again)], actor_type="worker", actor_id=str(worker.worker_id))
    stage.observe()


async def broken_commit(stage: Stage) -> None:
    """Let the commit of the first attempt's own transaction fail."""

    @stage.app.job("commit.write", retry=RETRY_AT_ONCE)
    async def write(ctx: Context) -> int:
        async with ctx.transaction() as conn:
            # A dangling reference, detected at the commit only.
            await stage.write_effect(ctx, conn, parent=-1 if ctx.job.attempt == 1 else None)
        return ctx.job.attempt

    stage.required_effects |= {"commit.write": ("transaction",)}
    await stage.ask(write, key="write")
    async with working(stage.app, **QUICK) as worker:
        await stage.rest(worker)


async def two_schedulers(stage: Stage) -> None:
    """Let two schedulers handle the same tick at the same time."""
    clock, app = Clock(stage.sql, NOON), stage.app

    @app.job("tick.work", schedulable=True)
    async def tick() -> None: ...

    await Schedules(app).create(stage.org, "often", cron="* * * * *", job_type="tick.work", actor=USER)
    clock.advance(MINUTE)
    with psycopg.connect(app.database_urls.direct_url) as door:
        # Both reach the ledger and stop there, unless one leaves the tick to the other.
        door.execute("lock table duly.key_ledger in exclusive mode")
        rounds = [asyncio.create_task(Scheduler(app).once()) for _ in range(2)]
        while _waiting_at_a_lock(stage) + sum(task.done() for task in rounds) < 2:
            await asyncio.to_thread(lambda: None)
    await asyncio.gather(*rounds)
    clock.advance(3 * MINUTE)
    await Scheduler(app).once()
    async with working(app, **QUICK) as worker:
        await stage.rest(worker)


def _waiting_at_a_lock(stage: Stage) -> int:
    row = stage.sql.execute(
        "select count(*) from pg_stat_activity "
        "where datname = current_database() and wait_event_type = 'Lock'"
    ).fetchone()
    return int(row[0]) if row else 0


async def overtaken(stage: Stage) -> None:
    """Let the transaction that began first commit last, and read the feed in between."""

    @stage.app.job("feed.note")
    async def note() -> None: ...

    async with stage.app.tenant_session(stage.org) as conn:
        await stage.ask(note, key="slow", conn=conn)
        await stage.ask(note, key="fast")
        await stage.read_feed()
    await stage.read_feed()
    async with working(stage.app, **QUICK) as worker:
        await stage.rest(worker)
    await stage.read_feed_to_its_end()


async def strangers(stage: Stage) -> None:
    """Request a job of another org in every way, and an unknown one."""

    @stage.app.job("org.secret")
    async def secret() -> str:
        return "secret"

    theirs = await stage.ask(secret, key="theirs")
    async with working(stage.app, **QUICK) as worker:
        await stage.rest(worker)
    for name, question in QUESTIONS.items():
        nobodys = uuid.uuid4()
        foreign = await answer(question(stage, theirs.job_id))
        unknown = await answer(question(stage, nobodys))
        visible = [org for org in (stage.org, stage.other) if str(org) in foreign + unknown]
        stage.keep(
            IsolationProbe(
                stage.other,
                name,
                foreign.replace(str(theirs.job_id), "<id>"),
                unknown.replace(str(nobodys), "<id>"),
                tuple(visible),
            )
        )


async def _status(stage: Stage, job_id: uuid.UUID) -> Any:
    return await stage.app.handle(job_id, org_id=stage.other).status()


async def _artifacts(stage: Stage, job_id: uuid.UUID) -> Any:
    return await stage.app.handle(job_id, org_id=stage.other).artifacts()


async def _select(stage: Stage, table: str, job_id: uuid.UUID) -> Any:
    """Query as a handler of the org that forgets the org in its condition."""
    async with stage.app.tenant_session(stage.other) as conn:
        cursor = await conn.execute(f"select * from duly.{table} where job_id = %s", [job_id])
        return await cursor.fetchall()


QUESTIONS: dict[str, Callable[[Stage, uuid.UUID], Awaitable[Any]]] = {
    "handle.status()": _status,
    "handle.artifacts()": _artifacts,
    "the view of jobs": lambda stage, job_id: _select(stage, "jobs", job_id),
    "the events": lambda stage, job_id: _select(stage, "event_log", job_id),
    "the results": lambda stage, job_id: _select(stage, "result_snapshots", job_id),
}


async def withdrawn(stage: Stage) -> None:
    """Cancel one job while it waits for its next attempt, and one while it runs and is about to fail."""
    inside, go = asyncio.Event(), asyncio.Event()

    @stage.app.job("cancel.runs", retry=RETRY_AT_ONCE)
    async def runs(ctx: Context) -> str:
        stage.act_outside(ctx)
        if ctx.job.attempt > 1:
            return "again"
        inside.set()
        await go.wait()
        raise ConnectionError("the provider hung up")

    @stage.app.job("cancel.waits")
    async def waits(ctx: Context) -> None:
        stage.act_outside(ctx)

    waiting = await stage.ask(waits, key="waits")
    await stage.cancel(waiting)
    running = await stage.ask(runs, key="runs")
    async with silent_worker(stage.app, stage.sql, **QUICK) as worker:
        await inside.wait()
        await stage.cancel(running)
        go.set()
        await stage.rest(worker)


async def lost_worker(stage: Stage) -> None:
    """Declare an idle worker lost; a minute later there is work again."""
    clock, app = Clock(stage.sql, NOON), stage.app

    @app.job("lost.work")
    async def job(n: int) -> int:
        return n

    async with working(app, heartbeat=seconds(0.05), lease=seconds(30), **QUICK) as worker:
        await stage.ask(job, 1, key="before")
        await stage.rest(worker)
        with stage.sql.transaction():
            # Between two beats, so that the next one finds the worker lost.
            stage.sql.execute("select from duly.workers for update")
            stage.sql.execute("update duly.workers set heartbeat_at = duly.now() - interval '1 hour'")
            stage.sql.execute("update duly.workers set lost_at = duly.now()")
        await Reaper(app).once()
        stage.observe()
        clock.advance(MINUTE)
        await stage.ask(job, 2, key="after")
        await stage.rest(worker)
        stage.observe()


async def late_heartbeat(stage: Stage) -> None:
    """Let a worker be silent, but for less than its lease, while a reaper checks."""
    app = stage.app

    @app.job("late.work")
    async def job(n: int) -> int:
        return n

    async with silent_worker(app, stage.sql, **QUICK) as worker:
        await stage.ask(job, 1, key="before")
        await stage.rest(worker)
        stage.sql.execute("update duly.workers set heartbeat_at = duly.now() - interval '20 s'")
        await Reaper(app).once()
        stage.observe()


async def failure_callbacks(stage: Stage) -> None:
    """Run jobs with failure callbacks: one fails, one dies, one is lost with its worker, one succeeds."""
    app = stage.app
    options = {"retry": ONE_ATTEMPT, "on_failed": stage.write_bridge}

    @app.job("bridge.fails", **options)
    async def fails() -> None:
        raise Fail("it is not there", code="no.such.thing")

    @app.job("bridge.dies", **options)
    async def dies() -> None:
        raise ConnectionError("the provider hung up")

    @app.job("bridge.lost", **options)
    async def lost() -> None: ...

    @app.job("bridge.well", **options)
    async def well() -> None: ...

    stage.required_effects |= {job.name: ("bridge",) for job in (fails, dies, lost, well)}
    await stage.ask(lost, key="lost")
    await _claim_and_die(stage)
    await Reaper(app).once()
    for job in (fails, dies, well):
        await stage.ask(job, key=job.name)
    async with working(app, **QUICK) as worker:
        await stage.rest(worker)
    await Reconciler(app).sweep_all()
    await Reconciler(app).sweep_all()


SCENARIOS: dict[str, Scenario] = {
    play.__name__: play
    for play in (
        *(mixture, zombies, crashes, second_thoughts, broken_commit, two_schedulers),
        *(overtaken, strangers, withdrawn, lost_worker, late_heartbeat, failure_callbacks, plain_path),
    )
}
