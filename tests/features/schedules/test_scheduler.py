"""The scheduler: each tick becomes one job at its time, or is missed by the policy."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from duly import Duly
from duly.features.schedules.scheduler import Scheduler
from duly.features.schedules.service import Schedules
from duly.jobs import store as job_store
from tests.features.schedules.scheduler_clock import (
    ADMIN,
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


async def test_a_tick_becomes_a_job_with_its_schedule_and_tick_in_the_metadata(
    app: Duly, org: uuid.UUID, clock: Clock, scheduler: Scheduler, sql: psycopg.Connection
) -> None:
    made = await schedule(app, org, payload={"room": "attic"})
    clock.set(NOON + MINUTE)
    await catch_up(scheduler)
    [tick] = await Schedules(app).ticks(org, "nightly")
    assert (tick.tick_at, tick.disposition, tick.recorded_at) == (NOON + MINUTE, "enqueued", NOON + MINUTE)
    assert tick.job_id
    job = await app.handle(tick.job_id, org_id=org).status()
    key = f"schedule:{made.schedule_id}:2026-11-15T12:01:00Z"
    assert (job.job_type, job.queue, job.status) == ("house.clean", "q:maintenance", "queued")
    assert (job.idempotency_key, job.request_id) == (key, key)
    assert job.correlation_id == f"schedule:{made.schedule_id}"
    assert (job.actor_type, job.actor_id) == ("system", "scheduler")
    assert sql.execute("select payload, metadata from duly.jobs").fetchone() == (
        {"room": "attic", "depth": 1},
        {"schedule_id": str(made.schedule_id), "tick_at": "2026-11-15T12:01:00Z"},
    )


async def test_nothing_runs_before_its_tick(
    app: Duly, org: uuid.UUID, clock: Clock, scheduler: Scheduler, sql: psycopg.Connection
) -> None:
    await schedule(app, org)
    clock.set(NOON + MINUTE - timedelta(microseconds=1))
    await catch_up(scheduler)
    assert (ticks(sql, org), count(sql, "jobs")) == ({}, 0)
    assert (await Schedules(app).get(org, "nightly")).next_tick_at == NOON + MINUTE


async def test_a_tick_is_not_served_twice(
    app: Duly, org: uuid.UUID, clock: Clock, scheduler: Scheduler, sql: psycopg.Connection
) -> None:
    await schedule(app, org)
    clock.set(NOON + MINUTE)
    await catch_up(scheduler)
    await catch_up(scheduler)
    snapshot = await Schedules(app).get(org, "nightly")
    assert (snapshot.last_tick_at, snapshot.next_tick_at) == (NOON + MINUTE, NOON + 2 * MINUTE)
    assert count(sql, "jobs") == 1


async def test_a_schedule_that_was_set_back_does_not_run_recorded_ticks_again(
    app: Duly, org: uuid.UUID, clock: Clock, scheduler: Scheduler, sql: psycopg.Connection
) -> None:
    """Even if an operator set it back by hand, and the idempotency keys have expired."""
    await schedule(app, org, missed="all")
    clock.set(NOON + 3 * MINUTE)
    await catch_up(scheduler)
    sql.execute("delete from duly.key_ledger")
    sql.execute("update duly.schedules set counted_until = %s, next_tick_at = %s", [NOON, NOON])
    clock.set(NOON + 4 * MINUTE)
    await catch_up(scheduler)
    assert list(ticks(sql, org).values()) == ["enqueued"] * 4
    assert count(sql, "jobs") == 4


async def test_the_wait_ends_at_the_next_tick_and_in_a_second_at_most(
    app: Duly, org: uuid.UUID, clock: Clock, scheduler: Scheduler
) -> None:
    assert await scheduler.once() == timedelta(seconds=1)
    await schedule(app, org)
    assert await scheduler.once() == timedelta(seconds=1)
    clock.set(NOON + timedelta(seconds=59.5))
    assert await scheduler.once() == timedelta(seconds=0.5)


async def test_seconds_tick(
    app: Duly, org: uuid.UUID, clock: Clock, scheduler: Scheduler, sql: psycopg.Connection
) -> None:
    await schedule(app, org, cron="*/2 * * * * *")
    for _ in range(6):
        clock.advance(timedelta(seconds=1))
        assert await catch_up(scheduler) <= timedelta(seconds=2)
    assert ticks(sql, org) == {NOON + timedelta(seconds=n): "enqueued" for n in (2, 4, 6)}


@pytest.mark.parametrize("policy", ["once", "skip", "all"])
@pytest.mark.parametrize("ticks_per_round", [100, 2])
async def test_all_ticks_between_two_polls_run(
    app: Duly, org: uuid.UUID, clock: Clock, sql: psycopg.Connection, policy: str, ticks_per_round: int
) -> None:
    declare(app)
    await schedule(app, org, cron="* * * * * *", missed=policy)
    clock.advance(timedelta(seconds=5))
    await catch_up(Scheduler(app, ticks_per_round=ticks_per_round))
    assert ticks(sql, org) == {NOON + timedelta(seconds=n): "enqueued" for n in range(1, 6)}
    assert count(sql, "jobs") == 5


@pytest.mark.parametrize("ticks_per_round", [100, 7])
async def test_once_merges_only_ticks_older_than_a_few_seconds(
    app: Duly, org: uuid.UUID, clock: Clock, sql: psycopg.Connection, ticks_per_round: int
) -> None:
    declare(app)
    await schedule(app, org, cron="* * * * * *", missed="once")
    clock.advance(timedelta(seconds=20))
    await catch_up(Scheduler(app, ticks_per_round=ticks_per_round))
    expected = {NOON + timedelta(seconds=n): "missed" if n < 15 else "enqueued" for n in range(1, 21)}
    assert ticks(sql, org) == expected
    assert count(sql, "jobs") == 6


OUTAGE = 30
POLICIES: dict[str, Callable[[int], str]] = {
    "skip": lambda minute: "enqueued" if minute == OUTAGE else "missed",
    "once": lambda minute: "enqueued" if minute == OUTAGE else "missed",
    "all": lambda minute: "enqueued",
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("ticks_per_round", [100, OUTAGE, 7])
async def test_after_an_outage_every_tick_is_run_or_recorded(
    app: Duly, org: uuid.UUID, clock: Clock, sql: psycopg.Connection, policy: str, ticks_per_round: int
) -> None:
    declare(app)
    await schedule(app, org, missed=policy)
    clock.set(NOON + OUTAGE * MINUTE + timedelta(seconds=30))
    await catch_up(Scheduler(app, ticks_per_round=ticks_per_round))
    expected = {NOON + n * MINUTE: POLICIES[policy](n) for n in range(1, OUTAGE + 1)}
    assert ticks(sql, org) == expected
    assert count(sql, "jobs") == Counter(expected.values())["enqueued"]


async def test_skip_runs_no_tick_later_than_the_tolerance(
    app: Duly, org: uuid.UUID, clock: Clock, scheduler: Scheduler, sql: psycopg.Connection
) -> None:
    await schedule(app, org, cron="0 13 * * *", missed="skip")
    clock.set(NOON + timedelta(hours=1, seconds=61))
    await catch_up(scheduler)
    assert ticks(sql, org) == {NOON + timedelta(hours=1): "missed"}
    clock.set(NOON + timedelta(days=1, hours=1, seconds=60))
    await catch_up(scheduler)
    assert ticks(sql, org)[NOON + timedelta(days=1, hours=1)] == "enqueued"


async def test_a_schedule_far_behind_does_not_delay_others(
    app: Duly, org: uuid.UUID, clock: Clock, sql: psycopg.Connection
) -> None:
    declare(app)
    for n in range(3):
        await schedule(app, org, f"behind-{n}", missed="all")
    clock.set(NOON + 50 * MINUTE - timedelta(seconds=1))
    late = await schedule(app, org, "late", job_type="house.alarm")
    clock.set(NOON + 50 * MINUTE)
    scheduler = Scheduler(app, batch=2, ticks_per_round=5)
    rounds = 0
    while not sql.execute(
        "select 1 from duly.schedule_ticks where schedule_id = %s", [late.schedule_id]
    ).fetchone():
        assert await scheduler.once() == timedelta(0)
        rounds += 1
    assert rounds <= 2
    await catch_up(scheduler)
    assert len(ticks(sql, org)) == 50
    assert count(sql, "schedule_ticks") == 151 == count(sql, "jobs")


@pytest.mark.parametrize("seed", range(2))
async def test_concurrent_schedulers_enqueue_one_job_per_tick(
    app: Duly, org: uuid.UUID, clock: Clock, sql: psycopg.Connection, seed: int
) -> None:
    declare(app)
    for n in range(20):
        await schedule(app, org, f"s{n}", cron=f"*/{n + 1} * * * *", missed="all")
    others = [Duly(settings=app.settings) for _ in range(3)]
    for other in others:
        declare(other)
    for hour in range(1, 4):
        clock.set(NOON + timedelta(hours=hour))
        racing = [Scheduler(each, batch=3 + seed, ticks_per_round=7) for each in [app, *others]]
        await asyncio.gather(*(catch_up(each) for each in racing))
        await catch_up(racing[0])
    await asyncio.gather(*(other.close() for other in others))
    expected = sum(len(range(0, 60, n + 1)) for n in range(20)) * 3
    assert count(sql, "schedule_ticks") == expected
    assert count(sql, "jobs") == expected
    query = "select count(distinct job_id), count(distinct (schedule_id, tick_at)) from duly.schedule_ticks"
    assert sql.execute(query).fetchone() == (expected, expected)


async def test_a_paused_schedule_records_its_ticks_as_missed_while_they_pass(
    app: Duly, org: uuid.UUID, clock: Clock, scheduler: Scheduler, sql: psycopg.Connection
) -> None:
    await schedule(app, org, missed="all")
    await Schedules(app).pause(org, "nightly", ADMIN, "painting")
    clock.set(NOON + 2 * MINUTE)
    await catch_up(scheduler)
    assert ticks(sql, org) == {NOON + MINUTE: "missed", NOON + 2 * MINUTE: "missed"}
    assert count(sql, "jobs") == 0


BERLIN = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "missed": "all"}


@pytest.mark.parametrize(
    ("day", "hour", "minute"),
    [(datetime(2026, 3, 29, tzinfo=UTC), 1, 0), (datetime(2026, 10, 25, tzinfo=UTC), 0, 30)],
    ids=["spring", "autumn"],
)
async def test_on_the_days_of_the_change_a_fixed_time_is_run_once(
    app: Duly, org: uuid.UUID, clock: Clock, sql: psycopg.Connection, day: datetime, hour: int, minute: int
) -> None:
    # The session's zone must not matter: in the hour of a fold its moments equal no moment of another zone.
    sql.execute(f"alter database {sql.info.dbname} set timezone = 'Europe/Berlin'")
    clock.set(day - timedelta(hours=6))
    async with Duly(settings=app.settings) as abroad:
        declare(abroad)
        await schedule(abroad, org, **BERLIN)
        for half_hour in range(12):
            clock.set(day + timedelta(minutes=30 * half_hour))
            await catch_up(Scheduler(abroad))
        tick = day.replace(hour=hour, minute=minute)
        assert ticks(sql, org) == {tick: "enqueued"}
        sql.execute("update duly.schedules set counted_until = %s, next_tick_at = %s", [day, day])
        await catch_up(Scheduler(abroad))
        assert (await Schedules(abroad).get(org, "nightly")).last_error is None
        assert [t.tick_at for t in await Schedules(abroad).ticks(org, "nightly")] == [tick]
    assert count(sql, "jobs") == 1


async def test_an_interval_runs_through_both_hours_of_the_fold(
    app: Duly, org: uuid.UUID, clock: Clock, scheduler: Scheduler, sql: psycopg.Connection
) -> None:
    start = datetime(2026, 10, 24, 23, 45, tzinfo=UTC)
    clock.set(start)
    await schedule(app, org, cron="*/30 * * * *", timezone="Europe/Berlin", missed="all")
    clock.set(start + timedelta(hours=3))
    await catch_up(scheduler)
    assert list(ticks(sql, org)) == [start + timedelta(minutes=15 + 30 * n) for n in range(6)]


async def test_the_scheduler_wakes_the_workers(
    app: Duly, org: uuid.UUID, clock: Clock, scheduler: Scheduler, sql
) -> None:
    await schedule(app, org)
    sql.execute("listen duly_ready")
    clock.set(NOON + MINUTE)
    await catch_up(scheduler)
    await (await app.resources()).waker.close()
    assert list(sql.notifies(timeout=5, stop_after=1))


async def test_the_servers_own_clock_ticks_as_well(
    app: Duly, org: uuid.UUID, scheduler: Scheduler, sql: psycopg.Connection
) -> None:
    await schedule(app, org, cron="* * * * * *")
    sql.execute("update duly.schedules set counted_until = now() - interval '1 s', next_tick_at = now()")
    assert await catch_up(scheduler) <= timedelta(seconds=1)
    [tick, *_] = await Schedules(app).ticks(org, "nightly")
    assert tick.disposition == "enqueued"
    assert timedelta(0) <= tick.recorded_at - tick.tick_at < timedelta(seconds=30)
    assert tick.job_id
    async with (await app.resources()).database.tenant(org) as conn:
        assert await job_store.read_job(conn, org, tick.job_id)
