"""Jobs that only succeed are written by their claim and their end; all others leave that path in time."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from duly import Actor, Context, Duly, Handle, Snooze, Status, context
from duly.core.decide import JobState, decide
from duly.core.errors import UnknownJob
from duly.core.outcome import ErrorInfo, Failed
from duly.core.policy import RetryPolicy
from duly.db.database import Database
from duly.maintenance.reaper import Reaper
from duly.worker import claim as claims
from duly.worker import settle_store
from duly.worker.claim import ClaimedJob
from duly.worker.workers_store import WorkerIdentity, register
from tests.worker.working import RETRY_AT_ONCE, dump_job_tables, event_types, seconds, until, working

JOBS = 12
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLAIN = ["queued", "started", "completed"]


async def enqueue(app: Duly, name: str, count: int = JOBS) -> list[Handle[Any]]:
    return await app.enqueue_many([app.registry.get(name).call(n) for n in range(count)])


async def run(app: Duly, name: str, attempts: int = JOBS, count: int = JOBS) -> list[Handle[Any]]:
    """Enqueue jobs, claim them at once, and return their handles when all attempts have been settled."""
    handles = await enqueue(app, name, count)
    async with working(app, slots=50) as worker:
        await worker.loop_events.wait("settled", attempts)
    return handles


async def take(app: Duly, worker_id: uuid.UUID | None = None) -> list[ClaimedJob]:
    """Claim all queued jobs, for a worker that does nothing else."""
    database = (await app.resources()).database
    worker = WorkerIdentity(worker_id or uuid.uuid4(), "test", "h", 1, "0", ("q:default",), 50, seconds(30))
    async with database.engine() as conn:
        await register(conn, worker)
        claim = await claims.claim_jobs(
            conn,
            worker_id=worker.worker_id,
            claim_id=uuid.uuid4(),
            lane="q:default",
            slots=50,
            after_org=uuid.UUID(int=0),
            gates=False,
        )
    assert all(job.is_plain for job in claim.jobs)
    return claim.jobs


async def finish(
    app: Duly, jobs: Sequence[ClaimedJob], *, last: bool = True
) -> set[tuple[uuid.UUID, uuid.UUID]]:
    """Complete jobs; the last ones of their claim, unless told otherwise."""
    claim_ids = {job.claim_id for job in jobs} if last else set()
    async with (await app.resources()).database.engine_autocommit() as conn:
        return await settle_store.complete_plain(conn, [(job, {"n": 1}) for job in jobs], claim_ids=claim_ids)


def count(sql: psycopg.Connection[Any], table: str) -> int:
    row = sql.execute(f"select count(*) from duly.{table}").fetchone()
    assert row
    return int(row[0])


@pytest.fixture
def quick(app: Duly, acting: uuid.UUID) -> Duly:
    @app.job("plain.quick", retry=RETRY_AT_ONCE)
    async def quick(n: int) -> int | None:
        return n or None

    return app


async def test_jobs_that_only_succeed_have_an_end_and_no_state(quick: Duly, sql: psycopg.Connection) -> None:
    handles = await run(quick, "plain.quick")
    assert (count(sql, "job_ends"), count(sql, "job_states"), count(sql, "claims")) == (JOBS, 0, 0)
    for n, handle in enumerate(handles):
        status = await handle.status()
        assert (status.status, str(status.outcome), status.attempt) == (Status.COMPLETED, "succeeded", 1)
        assert status.progress_percent == 100
        assert None not in (status.started_at, status.finished_at)
        assert await handle.result(1) == (n or None)
        assert await event_types(handle) == PLAIN


async def test_the_views_show_a_running_job_of_the_plain_path(quick: Duly, sql: psycopg.Connection) -> None:
    [handle, *_] = await enqueue(quick, "plain.quick")
    [job, *_] = await take(quick)
    assert (await handle.status()).status is Status.RUNNING
    row = sql.execute(
        "select event_type, actor_id from duly.job_events where job_id = %s order by event_seq",
        [handle.job_id],
    ).fetchall()
    worker = sql.execute("select worker_id::text from duly.workers").fetchone()
    assert worker
    assert row[1] == ("job.started", worker[0])
    assert job.job_id == handle.job_id
    assert sql.execute("select status from duly.idempotency_keys limit 1").fetchone() == ("running",)


async def test_every_event_is_in_the_feed_once_and_in_order(
    quick: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @quick.job("plain.mixed", retry=RETRY_AT_ONCE)
    async def mixed(ctx: Context, n: int) -> None:
        if n % 3 == 0 and ctx.attempt == 1:
            raise RuntimeError("again")
        if n % 3 == 1:
            await ctx.partial({"n": n})

    handles = await run(quick, "plain.mixed", attempts=JOBS + JOBS // 3)
    # Older transactions of any database hold back the feed.
    [now] = sql.execute("select pg_current_xact_id()::text").fetchone() or [""]
    await until(sql, f"select pg_snapshot_xmin(pg_current_snapshot()) > '{now}'::xid8")
    page = await quick.feed.read(acting, limit=500)
    seen = [(event.job_id, event.event_seq) for event in page.events]
    assert len(seen) == len(set(seen))
    for handle in handles:
        stored = [(handle.job_id, event.event_seq) async for event in handle.events()]
        assert [key for key in seen if key[0] == handle.job_id] == stored
        assert [seq for _, seq in stored] == list(range(1, len(stored) + 1))


async def test_a_failed_attempt_leaves_the_plain_path(quick: Duly, sql: psycopg.Connection) -> None:
    @quick.job("plain.failing", retry=RETRY_AT_ONCE)
    async def failing(ctx: Context, n: int) -> int:
        if n == 3 and ctx.attempt == 1:
            raise RuntimeError("once")
        return n

    handles = await run(quick, "plain.failing", attempts=JOBS + 1)
    assert (count(sql, "job_ends"), count(sql, "job_states")) == (JOBS - 1, 1)
    assert await event_types(handles[3]) == ["queued", "started", "retried", "started", "completed"]
    assert await handles[3].result(1) == 3
    assert await event_types(handles[4]) == PLAIN


async def test_outputs_of_a_handler_leave_the_plain_path(quick: Duly, sql: psycopg.Connection) -> None:
    @quick.job("plain.outputs")
    async def outputs(ctx: Context, n: int) -> int | Snooze:
        if n == 1:
            await ctx.partial({"n": n}, percent=50)
        elif n == 2:
            await ctx.checkpoint({"n": n})
        elif n == 3:
            await ctx.artifact("a.txt", b"x")
        elif n == 4:
            async with ctx.transaction() as conn:
                await conn.execute("select 1")
        elif n == 5:
            return Snooze(timedelta(hours=1))
        elif n == 6:
            ctx.count(succeeded=1)
        return n

    handles = await run(quick, "plain.outputs")
    assert (count(sql, "job_ends"), count(sql, "job_states")) == (JOBS - 6, 6)
    assert await event_types(handles[1]) == ["queued", "started", "partial", "completed"]
    assert await event_types(handles[2]) == ["queued", "started", "progressed", "completed"]
    for n in (1, 2, 3, 4, 6):
        assert await handles[n].result(1) == n
    assert (await handles[5].status()).status is Status.QUEUED
    assert count(sql, "claims") == 0


async def test_a_running_job_of_the_plain_path_can_be_canceled(app: Duly, acting: uuid.UUID) -> None:
    started = asyncio.Semaphore(0)

    @app.job("plain.waiting")
    async def waiting(n: int) -> None:
        if n == 0:
            started.release()
            await asyncio.Event().wait()

    handles = await enqueue(app, "plain.waiting")
    async with working(app, slots=50) as worker:
        await started.acquire()
        await handles[0].cancel("enough")
        await worker.loop_events.wait("settled", JOBS)
    assert (await handles[0].status()).status is Status.CANCELED
    assert await event_types(handles[0]) == ["queued", "started", "cancel_requested", "canceled"]


async def test_another_org_cannot_cancel_a_running_job_of_the_plain_path(
    quick: Duly, sql: psycopg.Connection
) -> None:
    stranger = uuid.uuid4()
    await quick.create_org(stranger, "Other")
    [handle, *_] = await enqueue(quick, "plain.quick")
    await take(quick)
    before = dump_job_tables(sql)
    with context(org_id=stranger, actor=Actor.user("u2")), pytest.raises(UnknownJob):
        await quick.handle(handle.job_id).cancel("not mine")
    assert dump_job_tables(sql) == before


async def test_the_jobs_of_a_lost_worker_run_again(quick: Duly, sql: psycopg.Connection) -> None:
    handles = await enqueue(quick, "plain.quick")
    jobs = await take(quick)
    ended = jobs[:2]
    assert await finish(quick, ended, last=False) == set()
    sql.execute("update duly.workers set heartbeat_at = now() - interval '1 hour'")
    while await Reaper(quick).once() == timedelta(0):
        pass
    assert count(sql, "claims") == 0
    assert await finish(quick, jobs[2:]) == {job.key[:2] for job in jobs[2:]}
    async with working(quick, slots=50) as worker:
        await worker.loop_events.wait("settled", JOBS - 2)
    for handle in handles:
        again = handle.job_id not in {job.job_id for job in ended}
        events = ["queued", "started", "lease_lost", "started", "completed"]
        assert await event_types(handle) == (events if again else PLAIN)


async def test_an_end_is_written_once(quick: Duly, sql: psycopg.Connection) -> None:
    await enqueue(quick, "plain.quick")
    jobs = await take(quick)
    async with (await quick.resources()).database.engine_autocommit() as conn:
        first = await settle_store.complete_plain(conn, [(jobs[0], None)])
        second = await settle_store.complete_plain(conn, [(jobs[0], None)])
    assert (first, second) == (set(), {jobs[0].key[:2]})
    assert await finish(quick, jobs[1:]) == set()
    assert count(sql, "job_ends") == JOBS


async def test_a_cancel_request_that_comes_first_is_not_overtaken_by_the_completion(
    quick: Duly, sql: psycopg.Connection
) -> None:
    [handle, *_] = await enqueue(quick, "plain.quick")
    jobs = await take(quick)
    await handle.cancel("enough")
    assert await finish(quick, jobs) == {jobs[0].key[:2]}
    assert count(sql, "claims") == 1, "the claim stays for the job that is not settled"
    assert count(sql, "job_ends") == JOBS - 1
    database = (await quick.resources()).database
    async with database.engine_autocommit() as conn:
        assert not await settle_store.complete(
            conn, [(jobs[0], None)], worker_id=uuid.uuid4(), claim_ids=[jobs[0].claim_id]
        )
    assert await event_types(handle) == ["queued", "started", "cancel_requested", "completed"]


async def test_a_completion_waits_for_a_job_that_is_leaving(
    quick: Duly, sql: psycopg.Connection, database: Database
) -> None:
    await enqueue(quick, "plain.quick")
    jobs = await take(quick)
    async with database.engine() as conn:
        await conn.execute(
            "select duly.leave_plain_path(%s::uuid, %s::uuid)", [jobs[0].org_id, jobs[0].job_id]
        )
        finishing = asyncio.create_task(finish(quick, jobs))
        await until(sql, "select exists (select from pg_locks where not granted)")
    assert await finishing == {jobs[0].key[:2]}


async def test_a_job_that_ended_does_not_leave(
    quick: Duly, sql: psycopg.Connection, database: Database
) -> None:
    await enqueue(quick, "plain.quick")
    jobs = await take(quick)
    async with database.engine_autocommit() as conn:
        await settle_store.complete_plain(conn, [(jobs[0], None)])
    await settle_store.leave_plain_path(database, jobs[:2])
    assert count(sql, "job_states") == 1
    failed = decide(JobState(Status.RUNNING, 1, 0), Failed(ErrorInfo("x", "y")), RetryPolicy(), NOW, 0.0)
    async with database.engine() as conn:
        held = await settle_store.settle(
            conn, [(job, failed) for job in jobs[:2]], actor_type="worker", actor_id="w"
        )
    assert held == {jobs[1].key}


async def test_a_limit_counts_the_jobs_that_run_on_the_plain_path(
    quick: Duly, sql: psycopg.Connection, acting: uuid.UUID
) -> None:
    await enqueue(quick, "plain.quick")
    jobs = await take(quick)
    await quick.limits.set(acting, max_running=20, actor=Actor.system("test"), reason="test")
    assert sql.execute("select running from duly.gates").fetchone() == (JOBS,)
    database = (await quick.resources()).database
    assert await finish(quick, jobs) == {job.key[:2] for job in jobs}
    async with database.engine_autocommit() as conn:
        await settle_store.complete(conn, [(job, None) for job in jobs], worker_id=uuid.uuid4())
    assert sql.execute("select running from duly.gates").fetchone() == (0,)


async def test_a_single_job_takes_the_plain_path(quick: Duly, sql: psycopg.Connection) -> None:
    async with working(quick, slots=50) as worker:
        await worker.listening.wait()
        await worker.loop_events.wait("idle")
        await quick.registry.get("plain.quick").enqueue(1)
        await worker.loop_events.wait("settled", 1)
    assert (count(sql, "job_ends"), count(sql, "job_states")) == (1, 0)


async def test_workers_of_the_previous_release_keep_the_plain_path_off(
    quick: Duly, sql: psycopg.Connection
) -> None:
    sql.execute("delete from duly.layouts")
    old = (
        "insert into duly.workers (worker_id, name, host, pid, version, queues, slots, lease) "
        "values (gen_random_uuid(), 'old', 'h', 1, '0.9.0', '{q:default}', 1, '30 s')"
    )
    sql.execute(old)
    assert sql.execute("select duly.enable_plain_path()").fetchone() == (False,)
    await run(quick, "plain.quick")
    assert (count(sql, "job_ends"), count(sql, "job_states")) == (0, JOBS)
    sql.execute(
        "update duly.workers set started_at = now() - interval '11 minutes', heartbeat_at = started_at"
    )
    sql.execute("update duly.workers set heartbeat_at = started_at")
    assert sql.execute("select duly.enable_plain_path()").fetchone() == (True,)
    with pytest.raises(psycopg.Error, match=r"workers of release 0\.9\.0 cannot work"):
        sql.execute(old)
