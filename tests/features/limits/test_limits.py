"""Set, pause, resume and list limits. tests/worker/test_limits.py shows that workers respect them."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly, errors
from duly.core.job import SYSTEM_ORG
from duly.features.limits.models import Limit
from duly.features.limits.service import Limits
from tests.features.schedules.scheduler_clock import NOON, Clock
from tests.worker.blocking_jobs import create_orgs, fetch_value

ANNA = Actor.operator("anna")
WHY: dict[str, Any] = {"actor": ANNA, "reason": "because"}


@pytest.fixture
def limits(app: Duly) -> Limits:
    return Limits(app)


def audited(sql: psycopg.Connection) -> list[tuple[Any, ...]]:
    query = """select org_id, action, actor_type || ':' || actor_id, reason, target_type, target_id, detail
               from duly.audit_entries order by entry_id"""
    return sql.execute(query).fetchall()


def values(limit: Limit) -> tuple[Any, ...]:
    return limit.max_running, limit.starts_per_second, limit.burst, limit.max_waiting


async def test_an_org_without_a_limit_is_unlimited_and_reading_creates_no_row(
    limits: Limits, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    limit = await limits.get(org)
    assert (values(limit), limit.paused_at, limit.running) == ((None, None, None, None), None, 0)
    assert (limit.org_id, limit.job_type) == (org, None)
    assert await limits.resume(org, **WHY) == limit
    assert await limits.set(org, max_running=None, **WHY) == limit
    assert (fetch_value(sql, "select count(*) from duly.gates"), audited(sql)) == (0, [])


async def test_omitted_fields_stay_and_none_lifts_a_limit(limits: Limits, org: uuid.UUID) -> None:
    assert values(await limits.set(org, max_running=2, max_waiting=9, **WHY)) == (2, None, None, 9)
    assert values(await limits.set(org, starts_per_second=2.5, **WHY)) == (2, 2.5, 3, 9)
    assert values(await limits.set(org, burst=10, **WHY)) == (2, 2.5, 10, 9)
    assert values(await limits.set(org, starts_per_second=5, max_running=None, **WHY)) == (None, 5, 10, 9)
    assert values(await limits.set(org, burst=None, **WHY)) == (None, 5, 5, 9)
    assert values(await limits.set(org, starts_per_second=None, **WHY)) == (None, None, None, 9)
    assert values(await limits.get(org)) == (None, None, None, 9)


async def test_each_change_is_audited_in_its_org_or_in_the_systems_trail(
    limits: Limits, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    for _ in range(2):
        await limits.set(org, max_running=2, actor=ANNA, reason="noisy")
    await limits.set(org, max_running=5, max_waiting=10, actor=ANNA, reason="calm again")
    for _ in range(2):
        await limits.pause(job_type="mail.send", actor=ANNA, reason="provider is down")
    for _ in range(2):
        await limits.resume(job_type="mail.send", actor=ANNA, reason="up again")
    await limits.pause(org, "mail.send", actor=ANNA, reason="complaints")
    actor, here = "operator:anna", ("limit", f"org:{org}")
    assert audited(sql) == [
        (org, "limit.set", actor, "noisy", *here, {
            "before": {"max_running": None}, "after": {"max_running": 2}}),
        (org, "limit.set", actor, "calm again", *here, {
            "before": {"max_running": 2, "max_waiting": None},
            "after": {"max_running": 5, "max_waiting": 10}}),
        (SYSTEM_ORG, "limit.paused", actor, "provider is down", "limit", "job_type:mail.send", {}),
        (SYSTEM_ORG, "limit.resumed", actor, "up again", "limit", "job_type:mail.send", {}),
        (org, "limit.paused", actor, "complaints", "limit", f"org:{org}/job_type:mail.send", {}),
    ]  # fmt: skip


async def test_a_pause_has_actor_and_reason_and_leaves_the_limits(limits: Limits, org: uuid.UUID) -> None:
    await limits.set(org, max_running=2, **WHY)
    paused = await limits.pause(org, actor=ANNA, reason="unpaid")
    assert (paused.paused_by, paused.pause_reason, paused.max_running) == ("operator:anna", "unpaid", 2)
    assert await limits.pause(org, actor=Actor.operator("bob"), reason="me too") == paused
    changed = await limits.set(org, max_running=3, **WHY)
    assert (changed.paused_at, changed.paused_by, changed.max_running) == (
        paused.paused_at, "operator:anna", 3,
    )  # fmt: skip
    resumed = await limits.resume(org, **WHY)
    assert (resumed.paused_at, resumed.paused_by, resumed.pause_reason) == (None, None, None)


@pytest.mark.parametrize(
    ("scope", "values", "field"),
    [
        ({}, {"max_running": 1}, "org_id"),
        ({"org_id": "unknown"}, {"max_running": 1}, "org_id"),
        ({"org_id": uuid.UUID(int=0)}, {"max_running": 1}, "org_id"),
        ({"job_type": "Mail Send"}, {"max_running": 1}, "job_type"),
        ({"job_type": "mail#send"}, {"max_running": 1}, "job_type"),
        ({"job_type": "mail"}, {}, "max_running"),
        ({"job_type": "mail"}, {"max_running": -1}, "max_running"),
        ({"job_type": "mail"}, {"max_running": True}, "max_running"),
        ({"job_type": "mail"}, {"max_running": 1.5}, "max_running"),
        ({"job_type": "mail"}, {"max_running": 10**9}, "max_running"),
        ({"job_type": "mail"}, {"starts_per_second": 0}, "starts_per_second"),
        ({"job_type": "mail"}, {"starts_per_second": float("nan")}, "starts_per_second"),
        ({"job_type": "mail"}, {"starts_per_second": float("inf")}, "starts_per_second"),
        ({"job_type": "mail"}, {"starts_per_second": "5"}, "starts_per_second"),
        ({"job_type": "mail"}, {"starts_per_second": 5, "burst": 0}, "burst"),
        ({"job_type": "mail"}, {"burst": 5}, "burst"),
        ({"job_type": "mail"}, {"starts_per_second": None, "burst": 5}, "burst"),
        ({"job_type": "mail"}, {"max_waiting": 5}, "max_waiting"),
    ],
)
async def test_an_invalid_argument_is_named_with_a_fix(
    limits: Limits, sql: psycopg.Connection, scope: dict[str, Any], values: dict[str, Any], field: str
) -> None:
    with pytest.raises(errors.ContractError) as caught:
        await limits.set(**scope, **values, **WHY)
    assert (caught.value.field, bool(caught.value.fix)) == (field, True)
    assert (fetch_value(sql, "select count(*) from duly.gates"), audited(sql)) == (0, [])


async def test_max_waiting_applies_to_a_whole_org_only(limits: Limits, org: uuid.UUID) -> None:
    with pytest.raises(errors.ContractError, match="counted by org"):
        await limits.set(org, "mail.send", max_waiting=5, **WHY)


async def test_limits_of_an_unknown_org_are_refused_and_those_of_a_suspended_org_are_not(
    limits: Limits, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    with pytest.raises(errors.UnknownOrg):
        await limits.set(uuid.uuid4(), max_running=1, **WHY)
    sql.execute("update duly.organizations set status = 'suspended'")
    assert (await limits.set(org, max_running=1, **WHY)).max_running == 1


async def test_actor_and_reason_are_required(limits: Limits, org: uuid.UUID) -> None:
    with pytest.raises(errors.MissingField, match="actor"):
        await limits.pause(org, actor=None, reason="r")  # type: ignore[arg-type]
    with pytest.raises(errors.MissingField, match="reason"):
        await limits.pause(org, actor=ANNA, reason=None)  # type: ignore[arg-type]


async def test_a_new_rate_starts_with_a_full_bucket_and_a_changed_one_with_what_is_left(
    limits: Limits, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    clock = Clock(sql, NOON)
    await limits.set(org, max_running=9, **WHY)
    sql.execute("update duly.gates set refilled_at = %s", [NOON])
    assert (await limits.set(org, starts_per_second=1, burst=10, **WHY)).available == 10
    sql.execute("update duly.gates set tokens = 4, refilled_at = %s", [NOON])
    clock.set(NOON + timedelta(seconds=2))
    assert (await limits.set(org, starts_per_second=5, **WHY)).available == 6
    assert (await limits.set(org, burst=3, **WHY)).available == 3
    clock.set(NOON + timedelta(seconds=60))
    assert (await limits.get(org)).available == 3


async def test_limits_are_listed_page_by_page(limits: Limits, app: Duly) -> None:
    orgs = await create_orgs(app, 5)
    for org in orgs:
        await limits.set(org, max_running=1, **WHY)
        await limits.set(org, "mail.send", max_running=1, **WHY)
    await limits.set(job_type="mail.send", max_running=1, **WHY)
    listed: list[Limit] = []
    after, pages = None, 0
    while pages == 0 or after is not None:
        page = await limits.list(limit=4, after=after)
        listed, after, pages = [*listed, *page.limits], page.after, pages + 1
    assert pages == 3
    assert len({limit.key for limit in listed}) == len(listed) == 11
    assert [limit.key for limit in listed] == sorted(limit.key for limit in listed)
    assert {limit.job_type for limit in (await limits.list(orgs[0])).limits} == {None, "mail.send"}
    assert len((await limits.list(job_type="mail.send")).limits) == 6
    for wrong in ({"after": "nonsense"}, {"limit": 0}, {"limit": True}, {"after": "MTIz"}):
        with pytest.raises(errors.ContractError):
            await limits.list(**wrong)


async def test_concurrent_changes_of_a_limit_are_not_lost(
    limits: Limits, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    await asyncio.gather(
        limits.set(org, max_running=2, **WHY),
        limits.set(org, max_waiting=7, **WHY),
        limits.pause(org, **WHY),
        *(limits.set(org, starts_per_second=n, **WHY) for n in (1, 2, 3)),
    )
    limit = await limits.get(org)
    assert (limit.max_running, limit.max_waiting, limit.paused_by) == (2, 7, "operator:anna")
    assert limit.starts_per_second in (1, 2, 3)
    assert len(audited(sql)) == 6
