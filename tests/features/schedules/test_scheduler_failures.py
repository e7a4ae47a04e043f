"""The scheduler loses no tick on crashes, errors, quotas and suspended orgs."""

from __future__ import annotations

import uuid
from datetime import timedelta

import psycopg
import pytest

from duly import Duly
from duly.core.errors import StoreUnavailable
from duly.features.schedules.scheduler import Scheduler
from duly.features.schedules.service import Schedules
from tests.features.schedules.scheduler_clock import (
    MINUTE,
    NOON,
    Clock,
    catch_up,
    count,
    declare,
    schedule,
    ticks,
)


@pytest.fixture
def clock(sql: psycopg.Connection) -> Clock:
    return Clock(sql, NOON)


@pytest.fixture
def scheduler(app: Duly) -> Scheduler:
    declare(app)
    return Scheduler(app)


@pytest.mark.parametrize("step", ["enqueue_jobs", "schedule_ticks", "schedules"])
async def test_a_crash_in_between_leaves_neither_tick_nor_job(
    app: Duly, org: uuid.UUID, clock: Clock, scheduler: Scheduler, sql: psycopg.Connection, step: str
) -> None:
    await schedule(app, org)
    _die_at(sql, step)
    clock.set(NOON + MINUTE)
    with pytest.raises(StoreUnavailable):
        await scheduler.once()
    assert (ticks(sql, org), count(sql, "jobs"), count(sql, "key_ledger")) == ({}, 0, 0)
    _live_again(sql, step)
    await catch_up(scheduler)
    assert (ticks(sql, org), count(sql, "jobs")) == ({NOON + MINUTE: "enqueued"}, 1)


_VICTIMS = {"enqueue_jobs": "key_ledger", "schedule_ticks": "schedule_ticks", "schedules": "schedules"}


def _die_at(sql: psycopg.Connection, step: str) -> None:
    """Cut the connection right after the step has written, by a trigger for this test."""
    sql.execute("""
        create function duly.test_die() returns trigger language plpgsql security definer
        as 'begin perform pg_terminate_backend(pg_backend_pid()); return null; end'
    """)
    verb = "update" if step == "schedules" else "insert"
    sql.execute(
        f"create trigger test_die after {verb} on duly.{_VICTIMS[step]} execute function duly.test_die()"
    )


def _live_again(sql: psycopg.Connection, step: str) -> None:
    sql.execute(f"drop trigger test_die on duly.{_VICTIMS[step]}")


async def test_a_job_type_of_another_process_is_left_to_it(
    app: Duly, org: uuid.UUID, clock: Clock, scheduler: Scheduler, sql: psycopg.Connection
) -> None:
    await schedule(app, org, missed="all")
    stranger = Duly(settings=app.settings)
    stranger.job("other.work", category="maintenance")(lambda: None)
    clock.set(NOON + 3 * MINUTE)
    before = sql.execute("select * from duly.schedules").fetchall()
    assert await Scheduler(stranger).once() == timedelta(seconds=1), "it does not spin"
    assert await Scheduler(Duly(settings=app.settings)).once() == timedelta(seconds=1)
    assert sql.execute("select * from duly.schedules").fetchall() == before
    await stranger.close()
    await catch_up(scheduler)
    assert list(ticks(sql, org).values()) == ["enqueued"] * 3


async def test_a_job_type_that_is_no_longer_schedulable_does_not_run(
    app: Duly, org: uuid.UUID, clock: Clock, scheduler: Scheduler, sql: psycopg.Connection
) -> None:
    await schedule(app, org, job_type="house.alarm")
    clock.set(NOON + MINUTE)
    changed = Duly(settings=app.settings)
    changed.job("house.alarm")(lambda: None)
    await catch_up(Scheduler(changed))
    await changed.close()
    assert count(sql, "schedule_ticks") == 0


async def test_a_schedule_with_an_error_neither_stops_others_nor_loses_ticks(
    app: Duly, org: uuid.UUID, clock: Clock, scheduler: Scheduler, sql: psycopg.Connection
) -> None:
    await schedule(app, org, "a", missed="all")
    await schedule(app, org, "b", job_type="house.alarm")
    sql.execute("delete from duly.queues where queue = 'q:maintenance'")
    clock.set(NOON + MINUTE)
    assert await scheduler.once() > timedelta(0), "it does not spin"
    broken, healthy = await Schedules(app).list(org)
    assert healthy.last_tick_at == NOON + MINUTE
    assert broken.last_error
    assert "'q:maintenance' takes no jobs" in broken.last_error
    assert (broken.retry_at, broken.last_tick_at) == (NOON + 2 * MINUTE, None)
    sql.execute("insert into duly.queues (queue) values ('q:maintenance')")
    clock.set(NOON + 2 * MINUTE - timedelta(seconds=1))
    await catch_up(scheduler)
    assert await Schedules(app).ticks(org, "a") == [], "it is left alone for a while"
    clock.set(NOON + 2 * MINUTE)
    await catch_up(scheduler)
    [broken, _] = await Schedules(app).list(org)
    assert (broken.last_error, broken.retry_at, broken.last_tick_at) == (None, None, NOON + 2 * MINUTE)
    assert [t.disposition for t in await Schedules(app).ticks(org, "a")] == ["enqueued", "enqueued"]


async def test_ticks_within_a_quota_are_enqueued_and_the_rest_later(
    app: Duly, org: uuid.UUID, clock: Clock, scheduler: Scheduler, sql: psycopg.Connection
) -> None:
    await schedule(app, org, missed="all")
    sql.execute("insert into duly.gates (org_id, job_type, max_waiting) values (%s, '', 2)", [org])
    clock.set(NOON + 5 * MINUTE)
    await catch_up(scheduler)
    assert list(ticks(sql, org).values()) == ["enqueued"] * 2
    sql.execute("delete from duly.gates")
    clock.set(NOON + 6 * MINUTE)
    await catch_up(scheduler)
    assert list(ticks(sql, org).values()) == ["enqueued"] * 6


async def test_ticks_of_a_suspended_org_wait_until_it_is_resumed(
    app: Duly, org: uuid.UUID, clock: Clock, scheduler: Scheduler, sql: psycopg.Connection
) -> None:
    await schedule(app, org)
    sql.execute("update duly.organizations set status = 'suspended'")
    clock.set(NOON + 2 * MINUTE)
    assert await scheduler.once() == timedelta(seconds=1)
    assert ticks(sql, org) == {}
    sql.execute("update duly.organizations set status = 'active'")
    await catch_up(scheduler)
    assert ticks(sql, org) == {NOON + MINUTE: "missed", NOON + 2 * MINUTE: "enqueued"}


async def test_a_schedule_inserted_by_hand_is_served(
    app: Duly, org: uuid.UUID, clock: Clock, scheduler: Scheduler, sql: psycopg.Connection
) -> None:
    sql.execute(
        """insert into duly.schedules (org_id, name, cron, job_type, created_by)
           values (%s, 'by-hand', '*/5 * * * *', 'house.clean', 'dba'),
                  (%s, 'broken', 'every day', 'house.clean', 'dba')""",
        [org, org],
    )
    await catch_up(scheduler)
    broken, made = await Schedules(app).list(org)
    assert made.next_tick_at == NOON + 5 * MINUTE
    assert "five fields" in (broken.last_error or "")
    clock.set(NOON + 5 * MINUTE)
    await catch_up(scheduler)
    assert ticks(sql, org) == {NOON + 5 * MINUTE: "enqueued"}
