"""The relay: every committed event with a listener becomes a delivery, once and in order, and no other."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import secrets
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from datetime import timedelta

import psycopg
import pytest

from duly import Actor, Duly, context
from duly.db.database import Database
from duly.features.events.relay import Relay
from duly.features.events.relay_store import skip_to_tip
from tests.db.open_transactions import wait_for_transactions
from tests.features.events.relaying import relay_all
from tests.features.webhooks.sample_events import LOG, endpoint, happen, job, messages

NOW, SECOND = timedelta(0), timedelta(seconds=1)


@pytest.fixture
async def open_sessions() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def until_blocked(sql: psycopg.Connection, task: asyncio.Task[timedelta]) -> None:
    """Wait until the task waits for a lock, or is done."""
    locks = "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    async with asyncio.timeout(10):
        while not sql.execute(locks).fetchall() and not task.done():
            await asyncio.wait([task], timeout=0.005)


async def test_an_endpoint_gets_the_events_that_it_selects_and_no_other(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    relay, other = Relay(app), uuid.uuid4()
    await app.create_org(other, "Other")
    before = await job(app, org)
    wait_for_transactions(sql)  # an endpoint also gets events that were not settled when it was created
    ends = endpoint(sql, org, "https://a", "job.completed", "job.failed")
    typed = endpoint(sql, org, "https://b", "job.*", job_types=["step.walk"])
    every = endpoint(sql, org, "https://c", "*")
    steps = endpoint(sql, org, "https://d", "job.progressed")
    off = endpoint(sql, org, "https://e", "*")
    sql.execute("update duly.webhook_endpoints set disabled_at = now() where endpoint_id = %s", [off])
    taken, walked = await job(app, org), await job(app, org, "step.walk")
    await job(app, other)
    await job(app, org, "duly.own")
    for seq, kind in enumerate(("job.started", "job.progressed", "job.completed"), 2):
        happen(sql, org, taken, seq, kind)
    await relay_all(app, sql, relay)
    deliveries = messages(sql, "endpoint_id, job_id, event_seq, event_type, follows, status")
    assert sorted(deliveries) == sorted([
        (ends, taken, 4, "job.completed", False, "pending"),
        (typed, walked, 1, "job.queued", False, "pending"),
        (every, taken, 1, "job.queued", False, "pending"),
        (every, taken, 2, "job.started", True, "pending"),
        (every, taken, 4, "job.completed", True, "pending"),
        (every, walked, 1, "job.queued", False, "pending"),
        (steps, taken, 3, "job.progressed", False, "pending"),
    ])  # fmt: skip
    assert before not in {row[0] for row in messages(sql)}, "events before the endpoint are not delivered"


async def test_without_listeners_the_mark_skips_to_the_tip_and_a_new_listener_gets_new_events(
    app: Duly, org: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    relay, mark = Relay(app), "select commit_xid::text::bigint, moved_at from duly.relay_mark"
    await job(app, org)
    sql.execute("update duly.relay_mark set moved_at = now()")
    wait_for_transactions(sql)
    before = sql.execute(mark).fetchone()
    assert NOW < await relay.once() <= SECOND
    assert sql.execute(mark).fetchone() == before, "it moved a moment ago: that is near enough"
    sql.execute("update duly.relay_mark set moved_at = now() - interval '11 seconds'")
    assert NOW < await relay.once() <= SECOND
    row = sql.execute("select commit_xid::text::bigint + 1 from duly.all_events").fetchone()
    [moved] = sql.execute(mark).fetchall()
    assert row == moved[:1], "never beyond what was read"
    endpoint(sql, org, "https://a")
    later = await job(app, org)
    wait_for_transactions(sql)
    async with database.engine() as conn:
        await skip_to_tip(conn)  # as if that had been decided before the endpoint was created
    await relay_all(app, sql, relay)
    assert messages(sql) == [(later, 1)]


async def test_an_event_that_commits_late_is_relayed_later_and_a_rolled_back_one_never(
    app: Duly, org: uuid.UUID, database: Database, sql: psycopg.Connection, open_sessions: AsyncExitStack
) -> None:
    endpoint(sql, org, "https://a")
    first, second = await job(app, org), await job(app, org)
    relay = Relay(app)
    await relay_all(app, sql, relay)
    late = await open_sessions.enter_async_context(database.engine())
    await late.execute(LOG, [org, first, 2, "job.started"])
    happen(sql, org, second, 2, "job.started")
    with pytest.raises(ZeroDivisionError):
        async with database.engine() as conn:
            await conn.execute(LOG, [org, second, 3, "job.completed"])
            raise ZeroDivisionError
    await relay.once()
    assert (second, 2) not in messages(sql), "an earlier transaction is still open"
    await open_sessions.aclose()
    await relay_all(app, sql, relay)
    assert sorted(messages(sql)) == sorted([(first, 1), (first, 2), (second, 1), (second, 2)])


async def test_an_earlier_event_of_a_job_is_relayed_along_though_its_transaction_is_later(
    app: Duly, org: uuid.UUID, database: Database, sql: psycopg.Connection, open_sessions: AsyncExitStack
) -> None:
    endpoint(sql, org, "https://a")
    one = await job(app, org)
    relay = Relay(app, batch_size=1)
    await relay_all(app, sql, relay)
    old = await open_sessions.enter_async_context(database.engine())
    await old.execute("select pg_current_xact_id()")
    happen(sql, org, one, 2, "job.started")
    happen(sql, org, one, 3, "job.retried")
    await old.execute(LOG, [org, one, 4, "job.started"])
    await open_sessions.aclose()
    wait_for_transactions(sql)
    assert await relay.once() == NOW, "the batch has scanned one event, the last of the job"
    assert messages(sql, "event_seq, follows") == [(1, False), (2, True), (3, True), (4, True)]
    await relay_all(app, sql, relay)
    assert messages(sql, "event_seq") == [(1,), (2,), (3,), (4,)]


async def test_concurrent_relays_and_writers_lose_no_event_and_invent_none(
    app: Duly, org: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    endpoint(sql, org, "https://a")
    jobs, dice = [await job(app, org) for _ in range(4)], random.Random(11)
    lock = "select pg_advisory_xact_lock(hashtext(%s::text))"
    follows = "select max(event_seq) + 1 from duly.all_events where org_id = %s and job_id = %s"

    async def write() -> None:
        """Events of two jobs: the transaction is as old as the first; the second comes when it is free."""
        for _ in range(15):
            with suppress(ZeroDivisionError):
                async with database.engine() as conn:
                    for one in sorted(dice.sample(jobs, 2)):
                        await conn.execute(lock, [one])
                        row = await (await conn.execute(follows, [org, one])).fetchone()
                        assert row
                        await conn.execute(LOG, [org, one, row[0], "job.started"])
                    if dice.random() < 0.2:
                        raise ZeroDivisionError

    writing = asyncio.gather(*(write() for _ in range(4)))
    while not writing.done():
        await asyncio.gather(*(Relay(app, batch_size=5).once() for _ in range(2)))
    await writing
    await relay_all(app, sql, Relay(app, batch_size=5))
    written = sql.execute("select job_id, event_seq from duly.all_events order by 1, 2").fetchall()
    assert len(written) > 50
    assert messages(sql) == written
    heads = sql.execute("select job_id, event_seq from duly.webhook_deliveries where not follows").fetchall()
    assert sorted(heads) == sorted((one, 1) for one in jobs), (
        "only the first delivery of each job does not follow another"
    )


async def test_a_mark_from_a_server_with_more_transactions_is_refused(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint(sql, org, "https://a")
    await job(app, org)
    sql.execute("update duly.relay_mark set commit_xid = '4611686018427387904'")
    wait_for_transactions(sql)
    with caplog.at_level(logging.ERROR, "duly.maintenance"):
        assert await Relay(app).once() > SECOND
    assert "more transactions" in caplog.text
    assert messages(sql) == []


async def test_whether_a_delivery_follows_is_decided_after_the_previous_one_is_settled(
    app: Duly, org: uuid.UUID, database: Database, sql: psycopg.Connection, open_sessions: AsyncExitStack
) -> None:
    """The settling transaction does not see the new delivery and cannot release it: it must not follow."""
    endpoint(sql, org, "https://a")
    one = await job(app, org)
    await relay_all(app, sql)
    happen(sql, org, one, 2, "job.started")
    wait_for_transactions(sql)
    ending = await open_sessions.enter_async_context(database.engine())
    await ending.execute(
        "update duly.webhook_deliveries set status = 'delivered', ended_at = now() where org_id = %s", [org]
    )
    relaying = asyncio.create_task(Relay(app).once())
    await until_blocked(sql, relaying)
    await open_sessions.aclose()
    await relaying
    assert messages(sql, "event_seq, follows") == [(1, False), (2, False)]


async def test_a_batch_that_is_too_large_shrinks_until_it_succeeds_and_grows_again(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    endpoint(sql, org, "https://a")
    await job(app, org)
    one = await job(app, org)
    sql.execute(
        "insert into duly.event_log (org_id, job_id, event_seq, event_type, status, attempt, occurred_at, "
        "actor_type, actor_id) select %s, %s, n, 'job.started', 'running', 1, duly.now(), 'user', 'u1' "
        "from generate_series(2, 400) n",
        [org, one],
    )
    wait_for_transactions(sql)
    sql.execute(
        "create function duly.too_much() returns trigger language plpgsql as $$ begin "
        "if (select count(*) from fresh) > 120 then "
        "raise query_canceled; end if; return null; end $$"
    )
    sql.execute(
        "create trigger too_much after insert on duly.webhook_deliveries referencing new table as fresh "
        "for each statement execute function duly.too_much()"
    )
    relay, failed, sizes = Relay(app, batch_size=400), 0, [0]
    async with asyncio.timeout(30):
        while len(messages(sql)) < 401:
            try:
                await relay.once()
            except psycopg.OperationalError:
                failed += 1
            sizes.append(len(messages(sql)))
    grown = [after - before for before, after in itertools.pairwise(sizes)]
    assert failed >= 2, "400 and 200 were too many"
    assert 100 <= max(grown) <= 120
    assert (
        messages(sql) == sql.execute("select job_id, event_seq from duly.all_events order by 1, 2").fetchall()
    )
    sql.execute("drop trigger too_much on duly.webhook_deliveries")
    for _ in range(3):
        await relay.once()
    assert relay._batch_size == 400


async def test_no_delivery_is_written_to_an_endpoint_that_is_being_deleted(
    app: Duly, org: uuid.UUID, database: Database, sql: psycopg.Connection, open_sessions: AsyncExitStack
) -> None:
    remaining, removed = endpoint(sql, org, "https://a"), endpoint(sql, org, "https://b")
    await job(app, org)
    wait_for_transactions(sql)
    removing = await open_sessions.enter_async_context(database.engine())
    await removing.execute("delete from duly.webhook_endpoints where endpoint_id = %s", [removed])
    relaying = asyncio.create_task(Relay(app).once())
    await until_blocked(sql, relaying)
    await open_sessions.aclose()
    await relaying
    assert messages(sql, "endpoint_id") == [(remaining,)]


async def test_an_org_whose_subscribers_cannot_be_notified_holds_up_no_other_org(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    endpoint(sql, org, "https://a", "job.canceled")
    for owner, recipient in ((org, secrets.token_hex(10_000)), (other, "eva")):  # too long for an index
        sql.execute(
            "insert into duly.subscriptions (org_id, subscription_id, outcomes, channel, recipient, locale, "
            "created_by) values (%s, duly.uuid7(), '{canceled}', 'in_app', %s, 'en', 'user:u1')",
            [owner, recipient],
        )
        await job(app, owner)
        with context(org_id=owner, actor=Actor.user("u1")):
            handle = await app.registry.get("step.take").enqueue("one more")
            await handle.cancel("not needed")
    await relay_all(app, sql)
    assert messages(sql, "event_type") == [("job.canceled",)]
    assert sql.execute("select recipient from duly.notifications").fetchall() == [("eva",)]
    assert f"could not notify subscribers of org {org}" in caplog.text
    assert str(other) not in caplog.text
