"""Invalid schedules, unknown names and foreign orgs are refused."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest

from duly import Duly, errors
from duly.db.database import Database
from duly.features.schedules.scheduler import Scheduler
from duly.features.schedules.service import Schedules
from tests.features.schedules import scheduler_clock
from tests.features.schedules.scheduler_clock import ADMIN, MINUTE, NOON, Clock, audited, declare

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


REFUSED: dict[str, tuple[dict[str, Any], type[errors.DulyError], str]] = {
    "cron": ({"cron": "0 25 * * *"}, errors.ContractError, "cron"),
    "never": ({"cron": "0 0 */31 * 1#3"}, errors.ContractError, "cron"),
    "zone": ({"timezone": "Europe/Atlantis"}, errors.ContractError, "timezone"),
    "missed": ({"missed": "twice"}, errors.ContractError, "missed"),
    "unknown type": ({"job_type": "no.such"}, errors.UnknownJobType, "job_type"),
    "category": ({"job_type": "report.build"}, errors.Unschedulable, "job_type"),
    "payload field": ({"payload": {"rooom": "x"}}, errors.ContractError, "payload.rooom"),
    "payload type": ({"payload": {"depth": "deep"}}, errors.ContractError, "payload.depth"),
    "payload kind": ({"payload": []}, errors.ContractError, "payload"),
    "payload size": ({"payload": {"room": "x" * 40_000}}, errors.PayloadRefused, "payload"),
    "secret": ({"payload": {"room": "AKIA" + "A" * 16}}, errors.SecretInPayload, "payload.room"),
    "actor": ({"actor": None}, errors.MissingField, "actor"),
    "no actor": ({"actor": "admin"}, errors.ContractError, "actor"),
    "reason": ({"reason": ""}, errors.ContractError, "reason"),
    "project": ({"project_id": "x"}, errors.ContractError, "project_id"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_an_invalid_field_is_named_and_nothing_is_written(
    schedules: Schedules, org: uuid.UUID, sql: psycopg.Connection, case: str
) -> None:
    changes, kind, field = REFUSED[case]
    with pytest.raises(kind) as refused:
        await schedules.create(org, "nightly", **{**NIGHTLY, **changes})
    assert refused.value.field == field
    assert refused.value.fix
    assert (scheduler_clock.count(sql, "schedules"), audited(sql)) == (0, [])


@pytest.mark.parametrize(("name", "kind"), [("", errors.ContractError), (None, errors.MissingField)])
async def test_a_schedule_has_a_name(
    schedules: Schedules, org: uuid.UUID, name: Any, kind: type[errors.DulyError]
) -> None:
    with pytest.raises(kind) as refused:
        await schedules.create(org, name, **NIGHTLY)
    assert refused.value.field == "name"


@pytest.mark.parametrize("n", [0, -1, 1001, "3", True])
async def test_a_count_out_of_range_is_refused(schedules: Schedules, org: uuid.UUID, n: Any) -> None:
    await schedules.create(org, "nightly", **NIGHTLY)
    for ask in (schedules.upcoming, schedules.ticks):
        with pytest.raises(errors.ContractError) as refused:
            await ask(org, "nightly", n)
        assert refused.value.field == "n"


@pytest.mark.parametrize("verb", ["pause", "resume", "delete", "run_now"])
async def test_an_unknown_schedule_and_a_change_without_actor_or_reason_are_refused(
    schedules: Schedules, org: uuid.UUID, verb: str
) -> None:
    with pytest.raises(errors.UnknownSchedule):
        await getattr(schedules, verb)(org, "weekly", ADMIN, "why not")
    await schedules.create(org, "nightly", **NIGHTLY)
    for actor, reason, field in ((None, "x", "actor"), (ADMIN, None, "reason")):
        with pytest.raises(errors.MissingField) as refused:
            await getattr(schedules, verb)(org, "nightly", actor, reason)
        assert refused.value.field == field


async def test_an_unknown_or_suspended_org_has_no_schedules(
    schedules: Schedules, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    with pytest.raises(errors.UnknownOrg):
        await schedules.create(uuid.uuid4(), "nightly", **NIGHTLY)
    with pytest.raises(errors.UnknownOrg):
        await schedules.list(uuid.uuid4())
    assert await schedules.list(org) == []
    sql.execute("update duly.organizations set status = 'suspended'")
    with pytest.raises(errors.UnknownOrg):
        await schedules.create(org, "nightly", **NIGHTLY)


async def test_a_job_type_that_this_process_does_not_know_is_not_run_by_hand(
    app: Duly, schedules: Schedules, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    await schedules.create(org, "nightly", **NIGHTLY)
    stranger = Duly(settings=app.settings)
    with pytest.raises(errors.UnknownJobType):
        await Schedules(stranger).run_now(org, "nightly", ADMIN, "now")
    await stranger.close()
    assert scheduler_clock.count(sql, "jobs") == 0


async def test_an_org_sees_and_changes_its_own_schedules_only(
    app: Duly, schedules: Schedules, org: uuid.UUID, clock: Clock, database: Database
) -> None:
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    mine, theirs = (
        await scheduler_clock.schedule(app, org),
        await scheduler_clock.schedule(app, other, payload={"room": "theirs"}),
    )
    clock.set(NOON + MINUTE)
    await scheduler_clock.catch_up(Scheduler(app))
    assert await schedules.list(org) == [await schedules.get(org, "nightly")]
    await schedules.delete(org, "nightly", ADMIN, "mine alone")
    foreign = await schedules.get(other, "nightly")
    assert (foreign.schedule_id, foreign.payload["room"]) == (theirs.schedule_id, "theirs")
    for asking, listed in ((org, mine), (other, theirs)):
        async with database.tenant(asking) as conn:
            for table in ("schedules", "schedule_ticks"):
                rows = await (await conn.execute(f"select org_id, schedule_id from duly.{table}")).fetchall()
                assert rows == [(asking, listed.schedule_id)], table
