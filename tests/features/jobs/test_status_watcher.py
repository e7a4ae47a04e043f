"""The status watcher: one poll serves all waiters."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from duly import Actor, Context, Duly, Handle, RetryPolicy, Snooze, context, errors
from duly.features.dead_letters.service import DeadLetters
from duly.features.jobs import status_watcher
from duly.features.jobs.status_watcher import EventHead, StatusWatcher
from duly.jobs import store as job_store
from tests.worker.blocking_jobs import SOON, BlockingJobs, create_orgs, enqueue, running_workers

ANNA = Actor.operator("anna")
_real = job_store.read_event_heads


class Polls:
    """Counts the polls, and delays their results as long as a test needs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.tries = 0
        self.error: Exception | None = None
        self.open = asyncio.Event()
        self.open.set()
        self._news = asyncio.Condition()
        monkeypatch.setattr(status_watcher.job_store, "read_event_heads", self._heads)

    async def _heads(self, conn: Any, keys: Sequence[tuple[uuid.UUID, uuid.UUID]]) -> Any:
        try:
            if self.error:
                raise self.error
            found = await _real(conn, keys)
            self.sizes.append(len(keys))
        finally:
            self.tries += 1
            async with self._news:
                self._news.notify_all()
        await self.open.wait()
        return found

    async def more(self, count: int = 1) -> None:
        """Wait for more polls, successful or not."""
        target = self.tries + count
        async with self._news:
            await self._news.wait_for(lambda: self.tries >= target)


@pytest.fixture
async def watch(app: Duly) -> AsyncIterator[StatusWatcher]:
    made = StatusWatcher(app, poll_interval=0.005, error_pause=0.005)
    yield made
    await made.close()


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> Polls:
    return Polls(monkeypatch)


async def cancel(*handles: Handle[Any]) -> None:
    with context(actor=ANNA):
        for handle in handles:
            await handle.cancel("no longer needed")


def waiting(watch: StatusWatcher, handle: Handle[Any], after_seq: int) -> asyncio.Task[EventHead]:
    return asyncio.create_task(watch.wait_for_event(handle.org_id, handle.job_id, after_seq))


async def test_one_poll_serves_all_waiters_and_polling_stops_without_waiters(
    app: Duly, watch: StatusWatcher, polls: Polls
) -> None:
    mine, theirs = await create_orgs(app, 2)
    blocking = BlockingJobs(app)
    handles = [
        *await enqueue(blocking.build, mine, range(3)),
        *await enqueue(blocking.build, theirs, range(3)),
    ]
    tasks = [waiting(watch, handle, 1) for handle in handles for _ in range(2)]
    await polls.more(3)
    assert set(polls.sizes) == {6}
    assert not any(task.done() for task in tasks)
    await cancel(handles[0])
    assert await asyncio.gather(*tasks[:2]) == [(2, "canceled")] * 2
    assert not any(task.done() for task in tasks[2:])
    await cancel(*handles[1:])
    assert await asyncio.gather(*tasks) == [(2, "canceled")] * 12
    assert watch._poller is not None
    await watch._poller
    count = len(polls.sizes)
    assert await watch.wait_for_event(mine, handles[0].job_id, 0) == (2, "canceled")
    # An ended job has no further events: the call returns at once.
    assert await watch.wait_for_event(mine, handles[0].job_id, 2) == (2, "canceled")
    assert polls.sizes[count:] == [1, 1]


async def test_the_head_is_the_last_event_of_a_job_in_every_status(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("site.odd", category="notification", retry=RetryPolicy(max_attempts=2, base=SOON, cap=SOON))
    async def odd(ctx: Context, what: str) -> None:
        await ctx.partial(1)
        if what == "snooze":
            raise Snooze(timedelta(hours=1))
        if what == "die":
            raise ValueError("no")

    with context(org_id=org, actor=ANNA):
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        await odd.options(scheduled_for=tomorrow).enqueue("delayed")
        snoozed, dead, done = [await odd.enqueue(what) for what in ("snooze", "die", "end")]
        async with running_workers(app, poll=SOON) as [worker]:
            await dead.wait(60)
            await done.wait(60)
            await worker.loop_events.wait("settled", 4)
        await cancel(await odd.enqueue("cancel"))
        await odd.enqueue("wait")
        await DeadLetters(app).rerun(org, dead.job_id, ANNA, "again")
    found = sql.execute("select org_id, job_id, max(event_seq) from duly.all_events group by 1, 2").fetchall()
    keys = [(row[0], row[1]) for row in found]
    async with (await app.resources()).database.engine() as conn:
        heads = await job_store.read_event_heads(conn, keys)
    assert [head[0] for head in heads] == [row[2] for row in found]
    assert sorted(heads) == [
        *[(1, "queued")] * 2, (2, "canceled"), (2, "queued"), (4, "completed"), (4, "queued"), (8, "failed"),
    ]  # fmt: skip
    assert (await snoozed.status()).status == "queued"


async def test_a_waiter_that_arrives_during_a_poll_is_served_by_the_next(
    app: Duly, watch: StatusWatcher, polls: Polls, org: uuid.UUID
) -> None:
    [first, second] = await enqueue(BlockingJobs(app).build, org, [1, 2])
    polls.open.clear()
    early = waiting(watch, first, 1)
    await polls.more()
    # The poll has read the database, and has not notified the waiter yet.
    await cancel(first, second)
    late, other = waiting(watch, first, 1), waiting(watch, second, 1)
    polls.open.set()
    async with asyncio.timeout(30):
        assert await asyncio.gather(early, late, other) == [(2, "canceled")] * 3


async def test_a_canceled_waiter_does_not_affect_others(
    app: Duly, watch: StatusWatcher, polls: Polls, org: uuid.UUID
) -> None:
    [handle, left] = await enqueue(BlockingJobs(app).build, org, [1, 2])
    going, staying, gone = waiting(watch, handle, 1), waiting(watch, handle, 1), waiting(watch, left, 1)
    await polls.more()
    for task in (going, gone):
        task.cancel()
    await asyncio.gather(going, gone, return_exceptions=True)
    await polls.more(2)
    assert polls.sizes[-1] == 1
    await cancel(handle)
    assert await staying == (2, "canceled")


async def test_no_error_ends_the_polling(
    app: Duly, watch: StatusWatcher, polls: Polls, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    [handle] = await enqueue(BlockingJobs(app).build, org, [1])
    sql.execute("alter table duly.job_states rename column event_seq to gone")
    task = waiting(watch, handle, 1)
    await polls.more(2)
    sql.execute("alter table duly.job_states rename column gone to event_seq")
    polls.error = RuntimeError("a bug")
    await polls.more(2)
    polls.error = None
    assert not task.done()
    await cancel(handle)
    assert await task == (2, "canceled")


async def test_closing_fails_the_remaining_waiters(app: Duly, watch: StatusWatcher, polls: Polls) -> None:
    task = asyncio.create_task(watch.wait_for_event(uuid.uuid4(), uuid.uuid4(), 1))
    await polls.more(2)
    await watch.close()
    with pytest.raises(errors.StoreUnavailable):
        await task
    with pytest.raises(errors.StoreUnavailable):
        await watch.wait_for_event(uuid.uuid4(), uuid.uuid4(), 1)
    await watch.close()
