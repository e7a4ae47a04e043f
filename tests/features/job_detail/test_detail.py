"""The detail of a job: results, logs, attempts and relatives."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import psycopg
import pytest

from duly import Actor, Context, Duly, RetryPolicy, errors
from duly.features.dead_letters.service import DeadLetters
from duly.features.jobs.service import Jobs
from tests.worker.working import (
    RETRY_AT_ONCE,
    TWO_ATTEMPTS,
    lose_all_workers,
    run_until_ended,
    silent_worker,
    working,
)

OPS = Actor.user("ops")


@pytest.fixture
def jobs(app: Duly) -> Jobs:
    return Jobs(app)


async def test_the_detail_has_partial_results_logs_and_children(
    app: Duly, jobs: Jobs, acting: uuid.UUID
) -> None:
    @app.job("tell.child")
    async def child(n: int) -> None: ...

    @app.job("tell.parts", subject=lambda payload, actor: "doc-1")
    async def parts(ctx: Context, region: str) -> None:
        ctx.log.info("here we go")
        for n in range(3):
            await ctx.partial({"n": n, "same": True}, key=f"k{n}", percent=n)
        await ctx.enqueue_many([child.call(1), child.call(2)])

    other = await child.enqueue(9)
    handle = await parts.enqueue("DE")
    await run_until_ended(app, handle)
    detail = await jobs.full_detail(acting, handle.job_id)
    [row] = detail.timeline.rows
    assert row.run is not None
    assert [chunk.last_seq for chunk in row.run.results] == [1, 2, 3]
    assert [event.event_seq for event in detail.events] == list(range(1, len(detail.events) + 1))
    assert not detail.more_events
    assert [(one.result_seq, one.chunk_key, one.payload) for one in detail.record.partial_results] == [
        (1, "k0", None),
        (2, "k1", {"n": 1, "same": True}),
        (3, "k2", {"n": 2, "same": True}),
    ]
    chosen = (await jobs.full_detail(acting, handle.job_id, compared=[1])).record.partial_results
    assert [one.payload is not None for one in chosen] == [True, False, False]
    assert detail.payload == {"region": "DE"}
    assert [line.message for line in detail.record.log_lines] == ["here we go"]
    assert [one.relation for one in detail.relatives] == ["child", "child"]
    assert other.job_id not in {one.job_id for one in detail.relatives}
    below = await jobs.full_detail(acting, detail.relatives[0].job_id)
    assert [(one.relation, one.job_id, one.subject_id) for one in below.relatives] == [
        ("parent", handle.job_id, "doc-1")
    ]
    assert detail.record.dead_letter is detail.record.schedule is None
    assert detail.explanation[0].startswith("Succeeded at")


async def test_a_zombie_attempt_is_marked_lost_taken_over_and_refused(
    app: Duly, jobs: Jobs, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    @app.job("tell.zombie", retry=RETRY_AT_ONCE)
    async def zombie(ctx: Context) -> int:
        if ctx.job.attempt == 1:
            started.set()
            await go_on.wait()
        return ctx.job.attempt

    handle = await zombie.enqueue()
    async with silent_worker(app, sql) as old:
        await started.wait()
        await lose_all_workers(app, sql)
        async with working(app):
            await handle.wait(20)
        go_on.set()
        await old.loop_events.wait("lost")
    rows = (await jobs.full_detail(acting, handle.job_id)).timeline.rows
    assert [[mark.kind.value for mark in row.marks] for row in rows] == [
        ["lease_lost", "refused"],
        ["taken_over"],
    ]
    first, second = rows[0].run, rows[1].run
    assert first is not None
    assert second is not None
    assert first.worker != second.worker
    assert first.ghost is not None
    assert first.ghost.end >= second.end


async def test_replays_are_related_in_both_directions(app: Duly, jobs: Jobs, acting: uuid.UUID) -> None:
    @app.job("tell.breaks", retry=TWO_ATTEMPTS)
    async def breaks() -> None:
        raise ValueError("no")

    box = DeadLetters(app)
    chain = [await breaks.enqueue()]
    async with working(app):
        await chain[0].wait(20)
        for _ in range(2):
            chain.append(await box.replay(acting, chain[-1].job_id, OPS, "again"))
            await chain[-1].wait(20)
    again = await box.rerun(acting, chain[0].job_id, OPS, "once more")
    middle = await jobs.full_detail(acting, chain[1].job_id)
    assert [(one.relation, one.depth, one.job_id) for one in middle.relatives] == [
        ("replay_of", 1, chain[0].job_id),
        ("replayed_by", 1, chain[2].job_id),
    ]
    first = await jobs.full_detail(acting, chain[0].job_id)
    assert {(one.depth, one.job_id) for one in first.relatives} == {
        (1, chain[1].job_id),
        (2, chain[2].job_id),
        (1, again.job_id),
    }
    assert first.record.dead_letter is not None
    assert (first.record.dead_letter.resolution, first.record.dead_letter.successor_job_id) == (
        "replayed",
        chain[1].job_id,
    )
    assert [row.run.ended for row in first.timeline.rows if row.run] == ["job.retried", "job.failed"]


async def test_a_job_of_a_schedule_names_it(app: Duly, jobs: Jobs, acting: uuid.UUID) -> None:
    @app.job("tell.daily", schedulable=True)
    async def daily() -> None: ...

    name = "every-morning"
    made = await app.schedules.create(acting, name, cron="0 7 * * *", job_type="tell.daily", actor=OPS)
    handle = await app.schedules.run_now(acting, name, OPS, "now")
    detail = await jobs.full_detail(acting, handle.job_id)
    assert detail.record.schedule is not None
    assert (detail.record.schedule.name, detail.record.schedule.schedule_id) == (name, made.schedule_id)
    odd = await daily.options(metadata={"schedule_id": "7 o'clock"}).enqueue()
    assert (await jobs.full_detail(acting, odd.job_id)).record.schedule is None


async def test_large_payloads_and_many_events_are_left_out(
    app: Duly, jobs: Jobs, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("tell.long", retry=RetryPolicy(max_attempts=1))
    async def long(text: str) -> None: ...

    # A job with an identity has a state and its own events.
    handle = await long.options(run_identity="long").enqueue("ä" * 40_000)
    await run_until_ended(app, handle)
    sql.execute(
        "insert into duly.event_log select org_id, job_id, 2 + n, 'job.progressed', status, attempt, "
        "occurred_at, actor_type, actor_id from duly.event_log, generate_series(2, 700) n "
        "where job_id = %s and event_seq = 2",
        [handle.job_id],
    )
    sql.execute("update duly.job_states set event_seq = 702 where job_id = %s", [handle.job_id])
    detail = await jobs.full_detail(acting, handle.job_id)
    assert detail.payload is None
    assert await jobs.payload(acting, handle.job_id) == {"text": "ä" * 40_000}
    assert detail.more_events
    assert len(detail.events) == 100
    assert detail.timeline.rows[0].run is not None
    assert not detail.timeline.shortened


async def test_a_job_of_another_org_is_unknown(app: Duly, jobs: Jobs, acting: uuid.UUID) -> None:
    @app.job("tell.mine")
    async def mine() -> None: ...

    handle = await mine.enqueue()
    theirs = uuid.uuid4()
    await app.create_org(theirs, "Other")
    messages: list[Any] = []
    for org, job in ((theirs, handle.job_id), (acting, theirs)):
        with pytest.raises(errors.UnknownJob) as caught:
            await jobs.full_detail(org, job)
        messages.append(str(caught.value).replace(str(job), "X"))
    assert messages[0] == messages[1]


async def test_a_job_is_explained_in_both_languages(app: Duly, jobs: Jobs, acting: uuid.UUID) -> None:
    @app.job("tell.waits")
    async def waits() -> None: ...

    handle = await waits.enqueue()
    assert (await jobs.full_detail(acting, handle.job_id, language="de")).explanation == (
        "Kein aktiver Worker bedient die Warteschlange q:default.",
    )
    with pytest.raises(errors.UnknownJob):
        await jobs.payload(acting, uuid.uuid4())
