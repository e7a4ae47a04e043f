"""Create, change, pause, resume, run and delete schedules."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from pydantic import ValidationError

from duly import Actor, Duly, context, errors
from duly.features.schedules.scheduler import Scheduler
from duly.features.schedules.service import Schedules
from tests.features.schedules import scheduler_clock
from tests.features.schedules.scheduler_clock import ADMIN, MINUTE, NOON, Clock, audited, declare, ticks

NIGHTLY = {"cron": "0 3 * * *", "job_type": "house.clean", "actor": ADMIN}


@pytest.fixture
def clock(sql: psycopg.Connection) -> Clock:
    return Clock(sql, NOON)


@pytest.fixture
def schedules(app: Duly, clock: Clock) -> Schedules:
    declare(app)

    @app.job("report.build", category="planning")
    async def build(region: str) -> None: ...

    return Schedules(app)


async def test_a_schedule_knows_its_next_tick_from_the_start(schedules: Schedules, org: uuid.UUID) -> None:
    snapshot = await schedules.create(
        org, "nightly", **NIGHTLY, timezone="Europe/Berlin", payload={"room": "attic"}
    )
    assert snapshot == await schedules.get(str(org), "nightly")
    assert (snapshot.name, snapshot.cron, snapshot.timezone) == ("nightly", "0 3 * * *", "Europe/Berlin")
    assert (snapshot.job_type, snapshot.missed_policy) == ("house.clean", "once")
    assert snapshot.payload == {"room": "attic", "depth": 1}
    assert snapshot.next_tick_at == datetime(2026, 11, 16, 2, tzinfo=UTC)
    assert (snapshot.last_tick_at, snapshot.paused_at, snapshot.created_by) == (None, None, "user:admin")
    with pytest.raises(ValidationError):
        snapshot.cron = "* * * * *"  # type: ignore[misc]


async def test_each_change_is_audited_and_a_change_of_nothing_is_not(
    schedules: Schedules, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    bob = Actor.system("deploy")
    first = await schedules.create(org, "nightly", **NIGHTLY)
    assert await schedules.create(org, "nightly", **{**NIGHTLY, "actor": bob}) == first
    await schedules.create(
        org, "nightly", **{**NIGHTLY, "actor": bob}, missed="all", reason="must not lose one"
    )
    for _ in range(2):
        await schedules.pause(org, "nightly", ADMIN, "painting")
    for _ in range(2):
        await schedules.resume(org, "nightly", ADMIN, "painted")
    await schedules.run_now(org, "nightly", ADMIN, "at once")
    await schedules.delete(org, "nightly", ADMIN, "sold the house")
    target = ("schedule", str(first.schedule_id))
    assert audited(sql) == [
        ("schedule.created", "user", "admin", None, *target),
        ("schedule.updated", "system", "deploy", "must not lose one", *target),
        ("schedule.paused", "user", "admin", "painting", *target),
        ("schedule.resumed", "user", "admin", "painted", *target),
        ("schedule.run_now", "user", "admin", "at once", *target),
        ("schedule.deleted", "user", "admin", "sold the house", *target),
    ]
    detail = sql.execute("select detail from duly.audit_entries where action = 'schedule.updated'").fetchone()
    assert detail
    assert (detail[0]["changed"], detail[0]["missed_policy"]) == (["missed_policy"], "all")


async def test_an_audit_row_names_the_request_it_came_from(
    schedules: Schedules, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    with context(request_id="req-9", correlation_id="corr-9"):
        await schedules.create(org, "nightly", **NIGHTLY)
    found = sql.execute("select request_id, correlation_id from duly.audit_entries").fetchone()
    assert found == ("req-9", "corr-9")


async def test_a_change_that_fails_is_not_audited(
    schedules: Schedules, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    with pytest.raises(errors.UnknownProject):
        await schedules.create(org, "nightly", **NIGHTLY, project_id=uuid.uuid4())
    assert (audited(sql), await schedules.list(org)) == ([], [])


async def test_a_changed_time_counts_from_now_on(
    app: Duly, schedules: Schedules, org: uuid.UUID, clock: Clock, sql: psycopg.Connection
) -> None:
    first = await schedules.create(org, "nightly", **{**NIGHTLY, "cron": "* * * * *"}, missed="all")
    clock.set(NOON + 3 * MINUTE)
    changed = await schedules.create(org, "nightly", **{**NIGHTLY, "cron": "*/2 * * * *"}, missed="all")
    assert (changed.schedule_id, changed.next_tick_at) == (first.schedule_id, NOON + 4 * MINUTE)
    assert ticks(sql, org) == {NOON + n * MINUTE: "missed" for n in (1, 2, 3)}
    clock.set(NOON + 4 * MINUTE)
    await scheduler_clock.catch_up(Scheduler(app))
    assert ticks(sql, org)[NOON + 4 * MINUTE] == "enqueued"
    moved = await schedules.create(
        org, "nightly", **{**NIGHTLY, "cron": "*/2 * * * *"}, timezone="Asia/Tokyo"
    )
    assert moved.next_tick_at == NOON + 6 * MINUTE


async def test_another_payload_leaves_the_due_ticks_to_the_scheduler(
    app: Duly, schedules: Schedules, org: uuid.UUID, clock: Clock, sql: psycopg.Connection
) -> None:
    await scheduler_clock.schedule(app, org)
    clock.set(NOON + MINUTE)
    await scheduler_clock.schedule(app, org, payload={"room": "attic"})
    await scheduler_clock.catch_up(Scheduler(app))
    assert ticks(sql, org) == {NOON + MINUTE: "enqueued"}
    assert sql.execute("select payload ->> 'room' from duly.jobs").fetchone() == ("attic",)


async def test_many_nodes_may_declare_the_same_schedule_at_their_start(
    app: Duly, schedules: Schedules, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    nodes = [Duly(settings=app.settings) for _ in range(8)]
    for node in nodes:
        declare(node)
    found = await asyncio.gather(*(Schedules(node).create(org, "nightly", **NIGHTLY) for node in nodes))
    await asyncio.gather(*(node.close() for node in nodes))
    assert len({snapshot.schedule_id for snapshot in found}) == 1
    assert [row[0] for row in audited(sql)] == ["schedule.created"]


async def test_a_paused_schedule_stays_paused_when_it_is_declared_again(
    schedules: Schedules, org: uuid.UUID
) -> None:
    await schedules.create(org, "nightly", **NIGHTLY)
    paused = await schedules.pause(org, "nightly", ADMIN, "painting")
    assert (paused.paused_at, paused.paused_by, paused.pause_reason) == (NOON, "user:admin", "painting")
    again = await schedules.create(org, "nightly", **{**NIGHTLY, "cron": "0 4 * * *"})
    assert again.paused_at == NOON


@pytest.mark.parametrize("scheduler_ran", [True, False])
async def test_ticks_of_a_pause_are_missed_and_none_is_run(
    app: Duly,
    schedules: Schedules,
    org: uuid.UUID,
    clock: Clock,
    sql: psycopg.Connection,
    scheduler_ran: bool,
) -> None:
    await scheduler_clock.schedule(app, org, missed="all")
    await schedules.pause(org, "nightly", ADMIN, "painting")
    clock.set(NOON + 90 * MINUTE)
    if scheduler_ran:
        await scheduler_clock.catch_up(Scheduler(app))
    clock.set(NOON + 90 * MINUTE + timedelta(seconds=30))
    resumed = await schedules.resume(org, "nightly", ADMIN, "painted")
    assert (resumed.paused_at, resumed.paused_by, resumed.pause_reason) == (None, None, None)
    assert resumed.next_tick_at == NOON + 91 * MINUTE
    clock.set(NOON + 91 * MINUTE)
    await scheduler_clock.catch_up(Scheduler(app))
    assert ticks(sql, org) == {NOON + n * MINUTE: "missed" if n <= 90 else "enqueued" for n in range(1, 92)}
    assert scheduler_clock.count(sql, "jobs") == 1


async def test_a_long_pause_is_recorded_in_steps(
    app: Duly, schedules: Schedules, org: uuid.UUID, clock: Clock, sql: psycopg.Connection
) -> None:
    await scheduler_clock.schedule(app, org, cron="* * * * * *")
    await schedules.pause(org, "nightly", ADMIN, "painting")
    clock.set(NOON + timedelta(seconds=1700))
    await schedules.resume(org, "nightly", ADMIN, "painted")
    assert list(ticks(sql, org).values()) == ["missed"] * 1700
    assert [row[0] for row in audited(sql)].count("schedule.resumed") == 1


async def test_run_now_enqueues_a_job_and_records_no_tick(
    app: Duly, schedules: Schedules, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    before = await schedules.create(org, "nightly", **NIGHTLY, payload={"room": "attic"})
    first = await schedules.run_now(org, "nightly", Actor.user("u1"), "now, please")
    second = await schedules.run_now(org, "nightly", Actor.user("u1"), "and again")
    assert first.created
    assert first.job_id != second.job_id
    job = await first.status()
    assert (job.job_type, job.actor_type, job.actor_id) == ("house.clean", "user", "u1")
    assert job.correlation_id == f"schedule:{before.schedule_id}"
    found = sql.execute(
        "select payload, metadata from duly.jobs where job_id = %s", [first.job_id]
    ).fetchone()
    assert found == (
        {"room": "attic", "depth": 1},
        {"schedule_id": str(before.schedule_id), "run_now": True},
    )
    assert await schedules.ticks(org, "nightly") == []
    assert await schedules.get(org, "nightly") == before
    detail = sql.execute(
        "select detail ->> 'job_id' from duly.audit_entries order by entry_id desc"
    ).fetchone()
    assert detail == (str(second.job_id),)


async def test_a_paused_schedule_can_be_run_by_hand(schedules: Schedules, org: uuid.UUID) -> None:
    await schedules.create(org, "nightly", **NIGHTLY)
    await schedules.pause(org, "nightly", ADMIN, "painting")
    assert (await schedules.run_now(org, "nightly", ADMIN, "just once")).created


async def test_a_deleted_schedule_keeps_its_history_and_frees_its_name(
    app: Duly, schedules: Schedules, org: uuid.UUID, clock: Clock, sql: psycopg.Connection
) -> None:
    first = await scheduler_clock.schedule(app, org, missed="all")
    clock.set(NOON + MINUTE)
    await scheduler_clock.catch_up(Scheduler(app))
    clock.set(NOON + 2 * MINUTE)
    await schedules.delete(org, "nightly", ADMIN, "sold")
    assert await schedules.list(org) == []
    with pytest.raises(errors.UnknownSchedule):
        await schedules.get(org, "nightly")
    clock.set(NOON + 9 * MINUTE)
    await scheduler_clock.catch_up(Scheduler(app))
    assert ticks(sql, org) == {NOON + MINUTE: "enqueued", NOON + 2 * MINUTE: "missed"}
    second = await scheduler_clock.schedule(app, org)
    assert second.schedule_id != first.schedule_id
    assert await schedules.ticks(org, "nightly") == []


async def test_upcoming_ticks_are_listed_even_while_paused(schedules: Schedules, org: uuid.UUID) -> None:
    await schedules.create(org, "nightly", **NIGHTLY, timezone="America/New_York")
    days = [datetime(2026, 11, day, 8, tzinfo=UTC) for day in (16, 17, 18)]
    assert await schedules.upcoming(org, "nightly", 3) == days
    await schedules.pause(org, "nightly", ADMIN, "painting")
    assert await schedules.upcoming(org, "nightly", 1) == days[:1]


async def test_recorded_ticks_are_listed_newest_first_up_to_a_count(
    app: Duly, schedules: Schedules, org: uuid.UUID, clock: Clock
) -> None:
    await scheduler_clock.schedule(app, org)
    clock.set(NOON + 5 * MINUTE)
    await scheduler_clock.catch_up(Scheduler(app))
    found = await schedules.ticks(org, "nightly", 2)
    assert [(tick.tick_at, tick.disposition) for tick in found] == [
        (NOON + 5 * MINUTE, "enqueued"),
        (NOON + 4 * MINUTE, "missed"),
    ]


async def test_ticks_have_the_status_of_their_jobs_in_pages_and_for_several_schedules(
    app: Duly, schedules: Schedules, org: uuid.UUID, clock: Clock, sql: psycopg.Connection
) -> None:
    often = await scheduler_clock.schedule(app, org, "often", missed="all")
    seldom = await scheduler_clock.schedule(app, org, "seldom", cron="*/2 * * * *", missed="skip")
    clock.set(NOON + 5 * MINUTE)
    await scheduler_clock.catch_up(Scheduler(app))
    recent = await schedules.recent(await schedules.list(org), 3)
    assert [tick.tick_at for tick in recent[often.schedule_id]] == [NOON + n * MINUTE for n in (5, 4, 3)]
    assert {(tick.disposition, tick.status, tick.outcome) for tick in recent[often.schedule_id]} == {
        ("enqueued", "queued", "pending")
    }
    late, missed = recent[seldom.schedule_id]
    assert (late.disposition, missed.disposition, missed.job_id, missed.status) == (
        *("enqueued", "missed", None, None),
    )
    first = await schedules.history(org, "often", limit=3)
    second = await schedules.history(org, "often", limit=3, after=first.after)
    assert [tick.tick_at for tick in (*first.ticks, *second.ticks)] == [
        NOON + n * MINUTE for n in (5, 4, 3, 2, 1)
    ]
    assert second.after is None
    assert await schedules.recent([]) == {}
    with pytest.raises(errors.ContractError, match="invalid cursor"):
        await schedules.history(org, "often", after="eHg=")


async def test_a_schedule_of_a_project_makes_jobs_of_that_project(
    app: Duly, schedules: Schedules, org: uuid.UUID, clock: Clock
) -> None:
    project = uuid.uuid4()
    await app.create_project(org, project, "Berlin")
    with context(project_id=uuid.uuid4()):
        await scheduler_clock.schedule(app, org, project_id=project)
        clock.set(NOON + MINUTE)
        await scheduler_clock.catch_up(Scheduler(app))
    by_hand = await schedules.run_now(org, "nightly", ADMIN, "now")
    [tick] = await schedules.ticks(org, "nightly")
    assert tick.job_id
    for job_id in (tick.job_id, by_hand.job_id):
        assert (await app.handle(job_id, org_id=org).status()).project_id == project
