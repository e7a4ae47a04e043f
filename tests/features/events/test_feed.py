"""The feed of an org: its own events in commit order, at least once and never skipped."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly, Job, context, errors
from duly.db.database import Database
from duly.db.statements import statement
from duly.features.events.models import FeedEvent
from duly.features.events.service import Feed
from duly.features.pagination import encode_cursor
from tests.db.open_transactions import wait_for_transactions
from tests.db.tenancy import insert
from tests.maintenance.aging import drop, make_partitions

Key = tuple[uuid.UUID, int]
LOG = (
    "insert into duly.event_log (org_id, job_id, event_seq, event_type, status, attempt, occurred_at, "
    "actor_type, actor_id) values (%s, %s, %s, 'job.progressed', 'running', 1, duly.now(), 'user', 'u1')"
)


@pytest.fixture
def step(app: Duly) -> Job[[int], int]:
    @app.job("step.take")
    async def take(n: int) -> int:
        return n

    return take


@pytest.fixture
async def open_sessions() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def enqueue(step: Job[[int], int], org: uuid.UUID, numbers: Iterable[int]) -> list[uuid.UUID]:
    with context(org_id=org, actor=Actor.user("u1"), request_id="req-1"):
        return [(await step.enqueue(n)).job_id for n in numbers]


async def whole(feed: Feed, org: uuid.UUID, after: str | None = None, size: int = 100) -> list[FeedEvent]:
    """Read all pages up to the current end."""
    found: list[FeedEvent] = []
    more = True
    while more:
        page = await feed.read(org, after, size)
        assert len(page.events) <= size
        found, after, more = [*found, *page.events], page.after, page.more
    return found


def keys(events: Iterable[Any]) -> list[Key]:
    return [(event.job_id, event.event_seq) for event in events]


async def test_every_event_of_the_org_comes_once_with_its_job(
    app: Duly, org: uuid.UUID, step: Job[[int], int], sql: psycopg.Connection
) -> None:
    jobs = await enqueue(step, org, range(3))
    async with app.worker():
        for job_id in jobs:
            await app.handle(job_id, org_id=org).wait(timeout=30)
    wait_for_transactions(sql)
    events = await whole(app.feed, org, size=2)
    stored = sql.execute("select job_id, event_seq from duly.all_events where org_id = %s", [org]).fetchall()
    assert sorted(keys(events)) == sorted(stored)
    assert len(stored) == 9
    for job_id in jobs:
        own = [event for event in events if event.job_id == job_id]
        assert [event.event_type for event in own] == ["job.queued", "job.started", "job.completed"]
    first = events[0]
    assert (first.org_id, first.job_type, first.request_id) == (org, "step.take", "req-1")
    assert (first.actor_type, first.actor_id) == ("user", "u1")


async def test_a_page_continues_after_the_previous_one_also_later(
    app: Duly, org: uuid.UUID, step: Job[[int], int], sql: psycopg.Connection
) -> None:
    jobs = await enqueue(step, org, range(5))
    wait_for_transactions(sql)
    first = await app.feed.read(org, limit=3)
    assert (keys(first.events), first.more) == ([(job, 1) for job in jobs[:3]], True)
    second = await app.feed.read(org, first.after, limit=3)
    assert (keys(second.events), second.more) == ([(job, 1) for job in jobs[3:]], False)
    third = await app.feed.read(org, second.after)
    assert (third.events, third.more) == ((), False)
    later = await enqueue(step, org, [5])
    wait_for_transactions(sql)
    assert keys((await app.feed.read(org, third.after)).events) == [(later[0], 1)]
    # The cursor of an event is as good as that of a page.
    assert keys((await app.feed.read(org, first.events[1].cursor)).events) == [
        (job, 1) for job in [*jobs[2:], *later]
    ]


async def test_one_transaction_may_be_larger_than_a_page_and_than_a_scan(
    app: Duly, acting: uuid.UUID, step: Job[[int], int], sql: psycopg.Connection
) -> None:
    handles = await app.enqueue_many([step.call(n) for n in range(23)])
    wait_for_transactions(sql)
    for size, scanned in ((5, 1000), (5, 7), (100, 7), (1, 1)):
        found = keys(await whole(Feed(app, max_scanned=scanned), acting, size=size))
        assert found == sorted((handle.job_id, 1) for handle in handles)


async def test_an_event_that_commits_late_is_never_missed_where_a_cursor_of_ids_misses_it(
    app: Duly, database: Database, org: uuid.UUID, step: Job[[int], int], open_sessions: AsyncExitStack,
    sql: psycopg.Connection,
) -> None:  # fmt: skip
    """Ids are assigned on enqueue; transactions commit in any order."""
    slow = await open_sessions.enter_async_context(database.tenant(org))
    with context(org_id=org, actor=Actor.user("u1")):
        [early] = await app.enqueue_many([step.call(1)], conn=slow)
        late = await step.enqueue(2)
    committed = sql.execute("select job_id from duly.all_events order by job_id").fetchall()
    assert committed == [(late.job_id,)]
    page = await app.feed.read(org)
    assert keys(page.events) == []  # not yet: an earlier transaction is still open
    await open_sessions.aclose()
    wait_for_transactions(sql)
    by_id = sql.execute("select job_id from duly.all_events where job_id > %s", [late.job_id]).fetchall()
    assert by_id == []  # and so it would be missed for ever
    assert keys((await app.feed.read(org, page.after)).events) == [(early.job_id, 1), (late.job_id, 1)]


class Writers:
    """Transactions that commit in another order than they began, during reads."""

    def __init__(self, database: Database, orgs: list[uuid.UUID], jobs: dict[uuid.UUID, uuid.UUID]) -> None:
        self._database = database
        self._orgs = orgs
        self._jobs = jobs
        self._ids = iter(range(2, 10_000))
        self._gates = [asyncio.Event() for _ in range(40)]
        self.written: list[Key] = []

    async def write(self, n: int) -> None:
        """Take ids, wait for a turn that is not one's own, write more, commit."""
        org = self._orgs[n % len(self._orgs)]
        async with self._database.engine() as conn:
            for turn in range(2):
                seq = next(self._ids)
                await conn.execute(LOG, [org, self._jobs[org], seq])
                if org == self._orgs[0]:
                    self.written.append((self._jobs[org], seq))
                if turn == 0:
                    await self._gates[n].wait()

    async def run(self, dice: random.Random) -> None:
        """Four at a time, opened in a random order."""
        running: dict[int, asyncio.Task[None]] = {}
        for n in range(len(self._gates)):
            running[n] = asyncio.create_task(self.write(n))
            await asyncio.wait([running[n]], timeout=0.005)
            while len(running) >= 4:
                await self._let(dice.choice(list(running)), running)
        for n in list(running):
            await self._let(n, running)

    async def _let(self, n: int, running: dict[int, asyncio.Task[None]]) -> None:
        self._gates[n].set()
        await running.pop(n)


async def test_under_concurrent_writers_the_feed_misses_nothing_and_a_cursor_of_numbers_does(
    app: Duly, database: Database, step: Job[[int], int], sql: psycopg.Connection
) -> None:
    orgs = [uuid.uuid4() for _ in range(2)]
    jobs = {}
    for org in orgs:
        await app.create_org(org, "Acme")
        [jobs[org]] = await enqueue(step, org, [0])
    writers = Writers(database, orgs, jobs)
    writing = asyncio.create_task(writers.run(random.Random(7)))
    feed, after, read = Feed(app, max_scanned=9), None, []
    number, numbered = 1, []
    while not writing.done():
        page = await feed.read(orgs[0], after, 5)
        read, after = [*read, *page.events], page.after
        async with database.tenant(orgs[0]) as conn:
            query = "select event_seq from duly.all_events where org_id = %s and event_seq > %s order by 1"
            rows = await (await conn.execute(query, [orgs[0], number])).fetchall()
        numbered += [seq for (seq,) in rows]
        number = max([number, *numbered])
    await writing
    wait_for_transactions(sql)
    read += await whole(feed, orgs[0], after)
    rows = sql.execute("select event_seq from duly.all_events where event_seq > %s", [number]).fetchall()
    numbered += [seq for (seq,) in rows]
    assert len(keys(read)) == len(set(keys(read))) == 41
    assert set(keys(read)) == {*writers.written, (jobs[orgs[0]], 1)}
    missed = {seq for _, seq in writers.written} - set(numbered)
    assert missed, "the writers were never out of order, so this shows nothing"


async def test_events_of_other_orgs_never_appear_and_only_advance_the_cursor(
    app: Duly, org: uuid.UUID, step: Job[[int], int], sql: psycopg.Connection
) -> None:
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    await enqueue(step, other, range(9))
    [mine] = await enqueue(step, org, [1])
    await enqueue(step, other, range(9, 18))
    wait_for_transactions(sql)
    feed, after, pages = Feed(app, max_scanned=4), None, []
    for _ in range(5):
        page = await feed.read(org, after)
        pages.append((keys(page.events), page.more))
        after = page.after
    assert pages == [([], True), ([], True), ([(mine, 1)], True), ([], True), ([], False)]
    assert {event.org_id for event in await whole(feed, other)} == {other}
    # A cursor may be of another org: it is a position, and says nothing about events.
    assert (await feed.read(other, after)).events == ()


async def test_row_level_security_protects_the_events_of_other_orgs(
    app: Duly, org: uuid.UUID, step: Job[[int], int], sql: psycopg.Connection
) -> None:
    """Even if the scan of the engine were wrong."""
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    [theirs] = await enqueue(step, other, [1])
    async with app.tenant_session(org) as conn:
        values = {"org_id": other, "job_ids": [theirs], "seqs": [1]}
        assert await (await conn.execute(statement("feed/read"), values)).fetchall() == []


async def test_follow_yields_existing_and_new_events(
    app: Duly, org: uuid.UUID, step: Job[[int], int]
) -> None:
    jobs = await enqueue(step, org, range(2))
    followed: list[uuid.UUID] = []
    async with asyncio.timeout(60):
        async for event in app.feed.follow(org):
            followed.append(event.job_id)
            if len(followed) == 2:
                jobs += await enqueue(step, org, [2])
            if len(followed) == 3:
                break
    assert followed == jobs
    assert (await app.feed.read(org, event.cursor)).events == ()


async def test_new_events_follow_the_tip(
    app: Duly, org: uuid.UUID, step: Job[[int], int], sql: psycopg.Connection
) -> None:
    await enqueue(step, org, range(3))
    wait_for_transactions(sql)
    tip = await app.feed.tip(org)
    [new] = await enqueue(step, org, [3])
    wait_for_transactions(sql)
    assert keys(await whole(app.feed, org, tip)) == [(new, 1)]


async def test_a_cursor_never_goes_beyond_what_was_committed(
    app: Duly, org: uuid.UUID, step: Job[[int], int], sql: psycopg.Connection
) -> None:
    """A crash forgets transactions that wrote nothing, and assigns their ids again."""
    await enqueue(step, org, range(2))
    for _ in range(5):
        with sql.transaction(force_rollback=True):
            sql.execute("select pg_current_xact_id()")
    wait_for_transactions(sql)
    [last] = sql.execute("select max(commit_xid::text::bigint) from duly.all_events").fetchone() or [0]
    end = encode_cursor(0, last + 1, uuid.UUID(int=0), 0)
    assert (await app.feed.read(org)).after == end
    assert (await app.feed.read(org, end)).after == end
    assert await app.feed.tip(org) == end


async def test_an_org_without_events_has_an_empty_feed_and_an_unknown_org_raises(
    app: Duly, org: uuid.UUID
) -> None:
    assert (await app.feed.read(str(org))).events == ()
    for call in (app.feed.read, app.feed.tip):
        with pytest.raises(errors.UnknownOrg):
            await call(uuid.uuid4())


@pytest.mark.parametrize("after", ["", "?", "MA==", "YSBiIGMgZA==", "MCAxIDAwMDAgMQ=="])
async def test_an_invalid_cursor_is_refused(app: Duly, org: uuid.UUID, after: str) -> None:
    with pytest.raises(errors.ContractError) as caught:
        await app.feed.read(org, after)
    assert caught.value.field == "after"


async def test_a_cursor_of_another_server_is_refused(app: Duly, org: uuid.UUID) -> None:
    far = encode_cursor(0, 2**62, uuid.UUID(int=0), 0)
    with pytest.raises(errors.ContractError, match="ahead of every transaction of this server"):
        await app.feed.read(org, far)


# --- retention


def old_events(sql: psycopg.Connection, org: uuid.UUID, day: str, many: int = 1) -> list[Key]:
    """Events of a job of that day, each of a transaction of its own."""
    row = sql.execute("select duly.uuid7_floor(%s::timestamptz)", [day]).fetchone()
    assert row
    insert(sql, "job_records", org, job_id=row[0], result_id=uuid.uuid4(), idempotency_key=day)
    for seq in range(1, many + 1):
        insert(sql, "event_log", org, job_id=row[0], event_seq=seq, occurred_at=day)
    wait_for_transactions(sql)
    return [(row[0], seq) for seq in range(1, many + 1)]


@pytest.fixture
def aged(sql: psycopg.Connection, org: uuid.UUID) -> uuid.UUID:
    make_partitions(sql)
    return org


def forget(sql: psycopg.Connection, now: str = "2025-01-01T00:00:00Z") -> None:
    """Drop all partitions that are old enough at a time."""
    while any(outcome == "dropped" for _, outcome in drop(sql, "event_log", "30 days", now)):
        pass


async def test_a_reader_past_the_dropped_events_does_not_notice_a_drop(
    app: Duly, aged: uuid.UUID, sql: psycopg.Connection
) -> None:
    old_events(sql, aged, "2024-01-17T00:00:00Z", 2)
    page = await app.feed.read(aged)
    assert (len(page.events), page.more) == (2, False)
    new = old_events(sql, aged, "2024-03-20T00:00:00Z")
    forget(sql, "2024-04-01T00:00:00Z")
    assert keys((await app.feed.read(aged, page.after)).events) == new


async def test_a_cursor_before_dropped_events_has_expired(
    app: Duly, aged: uuid.UUID, sql: psycopg.Connection
) -> None:
    old_events(sql, aged, "2024-01-17T00:00:00Z", 3)
    new = old_events(sql, aged, "2024-03-20T00:00:00Z")
    page = await app.feed.read(aged, limit=1)
    forget(sql, "2024-04-01T00:00:00Z")
    for after in (page.after, page.events[0].cursor):
        with pytest.raises(errors.CursorExpired) as caught:
            await app.feed.read(aged, after)
        assert (caught.value.field, caught.value.fix) == ("after", "start again without a cursor")
    assert keys(await whole(app.feed, aged)) == new


async def test_a_feed_started_after_a_partition_drop_still_reads_older_partitions(
    app: Duly, aged: uuid.UUID, sql: psycopg.Connection
) -> None:
    """A partition that an active job retains is older than a dropped one."""
    held = old_events(sql, aged, "2024-01-17T00:00:00Z", 3)
    insert(sql, "job_states", aged, job_id=held[0][0], status="running")
    old_events(sql, aged, "2024-02-14T00:00:00Z")
    stale = (await app.feed.read(aged, limit=1)).after
    forget(sql, "2024-06-01T00:00:00Z")
    assert sql.execute("select count(*) from duly.all_events").fetchone() == (3,)
    assert keys(await whole(app.feed, aged, size=1)) == held
    with pytest.raises(errors.CursorExpired):
        await app.feed.read(aged, stale)


async def test_events_deleted_from_the_default_partition_expire_cursors_like_dropped_partitions(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    old_events(sql, org, "2024-01-17T00:00:00Z", 3)
    page = await app.feed.read(org, limit=1)
    assert drop(sql, "event_log", "30 days", "2025-01-01T00:00:00Z") == [("event_log_default", "deleted")]
    with pytest.raises(errors.CursorExpired):
        await app.feed.read(org, page.after)
