"""One job as a page tells of it."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import psycopg
import pytest

from duly import Actor, Context, Duly, RetryPolicy, errors
from duly.features.dead_letters.service import DeadLetters
from duly.features.jobs.service import Jobs
from tests.worker.working import AT_ONCE, TWICE, deaf, done, lose_everything, working

OPS = Actor.user("ops")


@pytest.fixture
def jobs(app: Duly) -> Jobs:
    return Jobs(app)


async def test_a_job_with_parts_tells_how_they_came_and_of_its_children(
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
    await done(app, handle)
    told = await jobs.story(acting, handle.job_id)
    [row] = told.waterfall.rows
    assert row.run is not None
    assert [chunk.last_seq for chunk in row.run.chunks] == [1, 2, 3]
    assert [event.event_seq for event in told.events] == list(range(1, len(told.events) + 1))
    assert not told.more_events
    assert [(one.result_seq, one.chunk_key, one.payload) for one in told.snapshots] == [
        (1, "k0", None),
        (2, "k1", {"n": 1, "same": True}),
        (3, "k2", {"n": 2, "same": True}),
    ]
    chosen = (await jobs.story(acting, handle.job_id, compared=[1])).snapshots
    assert [one.payload is not None for one in chosen] == [True, False, False]
    assert told.payload == {"region": "DE"}
    assert [line.message for line in told.lines] == ["here we go"]
    assert [one.relation for one in told.relatives] == ["child", "child"]
    assert other.job_id not in {one.job_id for one in told.relatives}
    below = await jobs.story(acting, told.relatives[0].job_id)
    assert [(one.relation, one.job_id, one.subject_id) for one in below.relatives] == [
        ("parent", handle.job_id, "doc-1")
    ]
    assert told.letter is told.schedule is None
    assert told.explanation[0].startswith("Succeeded at")


async def test_a_zombie_is_seen_lost_taken_over_and_refused(
    app: Duly, jobs: Jobs, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    @app.job("tell.zombie", retry=AT_ONCE)
    async def zombie(ctx: Context) -> int:
        if ctx.job.attempt == 1:
            started.set()
            await go_on.wait()
        return ctx.job.attempt

    handle = await zombie.enqueue()
    async with deaf(app, sql) as old:
        await started.wait()
        await lose_everything(app, sql)
        async with working(app):
            await handle.wait(20)
        go_on.set()
        await old.loop_events.wait("lost")
    rows = (await jobs.story(acting, handle.job_id)).waterfall.rows
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


async def test_repetitions_are_told_in_both_directions(app: Duly, jobs: Jobs, acting: uuid.UUID) -> None:
    @app.job("tell.breaks", retry=TWICE)
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
    middle = await jobs.story(acting, chain[1].job_id)
    assert [(one.relation, one.depth, one.job_id) for one in middle.relatives] == [
        ("replay_of", 1, chain[0].job_id),
        ("replayed_by", 1, chain[2].job_id),
    ]
    first = await jobs.story(acting, chain[0].job_id)
    assert {(one.depth, one.job_id) for one in first.relatives} == {
        (1, chain[1].job_id),
        (2, chain[2].job_id),
        (1, again.job_id),
    }
    assert first.letter is not None
    assert (first.letter.resolution, first.letter.successor_job_id) == ("replayed", chain[1].job_id)
    assert [row.run.ended for row in first.waterfall.rows if row.run] == ["job.retried", "job.failed"]


async def test_a_job_that_came_from_a_schedule_names_it(app: Duly, jobs: Jobs, acting: uuid.UUID) -> None:
    @app.job("tell.daily", schedulable=True)
    async def daily() -> None: ...

    name = "every-morning"
    made = await app.schedules.create(acting, name, cron="0 7 * * *", job_type="tell.daily", actor=OPS)
    handle = await app.schedules.run_now(acting, name, OPS, "now")
    told = await jobs.story(acting, handle.job_id)
    assert told.schedule is not None
    assert (told.schedule.name, told.schedule.schedule_id) == (name, made.schedule_id)
    odd = await daily.options(metadata={"schedule_id": "7 o'clock"}).enqueue()
    assert (await jobs.story(acting, odd.job_id)).schedule is None


async def test_what_is_long_is_told_in_part(
    app: Duly, jobs: Jobs, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("tell.long", retry=RetryPolicy(max_attempts=1))
    async def long(text: str) -> None: ...

    handle = await long.enqueue("ä" * 40_000)
    await done(app, handle)
    sql.execute(
        "insert into duly.event_log select org_id, job_id, 2 + n, 'job.progressed', status, attempt, "
        "occurred_at, actor_type, actor_id from duly.event_log, generate_series(2, 700) n "
        "where job_id = %s and event_seq = 2",
        [handle.job_id],
    )
    sql.execute("update duly.job_states set event_seq = 702 where job_id = %s", [handle.job_id])
    told = await jobs.story(acting, handle.job_id)
    assert told.payload is None
    assert await jobs.payload(acting, handle.job_id) == {"text": "ä" * 40_000}
    assert told.more_events
    assert len(told.events) == 100
    assert told.waterfall.rows[0].run is not None
    assert not told.waterfall.shortened


async def test_another_orgs_job_and_an_unknown_one_are_the_same(
    app: Duly, jobs: Jobs, acting: uuid.UUID
) -> None:
    @app.job("tell.mine")
    async def mine() -> None: ...

    handle = await mine.enqueue()
    theirs = uuid.uuid4()
    await app.create_org(theirs, "Other")
    said: list[Any] = []
    for org, job in ((theirs, handle.job_id), (acting, theirs)):
        with pytest.raises(errors.UnknownJob) as caught:
            await jobs.story(org, job)
        said.append(str(caught.value).replace(str(job), "X"))
    assert said[0] == said[1]


async def test_a_story_is_explained_in_both_languages(app: Duly, jobs: Jobs, acting: uuid.UUID) -> None:
    @app.job("tell.waits")
    async def waits() -> None: ...

    handle = await waits.enqueue()
    assert (await jobs.story(acting, handle.job_id, language="de")).explanation == (
        "Kein aktiver Worker bedient die Warteschlange q:default.",
    )
    with pytest.raises(errors.UnknownJob):
        await jobs.payload(acting, uuid.uuid4())
