"""Change some fields of a schedule, and list schedules in pages."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from duly import Duly, errors
from duly.features.schedules.service import Schedules
from tests.features.schedules.scheduler_clock import ADMIN, NOON, Clock, declare
from tests.features.schedules.test_schedules import NIGHTLY, audited


@pytest.fixture
def made(app: Duly, sql: psycopg.Connection) -> Schedules:
    Clock(sql, NOON)
    declare(app)
    return Schedules(app)


async def test_some_fields_are_changed_and_the_others_stay(
    made: Schedules, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    first = await made.create(org, "nightly", **NIGHTLY, payload={"room": "attic"}, timezone="Europe/Berlin")
    why: Any = {"actor": ADMIN, "reason": "later"}
    later = await made.change(org, "nightly", cron="0 4 * * *", **why)
    unchanged = ("schedule_id", "timezone", "payload", "job_type", "missed_policy", "counted_until")
    assert [getattr(later, name) for name in unchanged] == [getattr(first, name) for name in unchanged]
    assert later.next_tick_at == datetime(2026, 11, 16, 3, tzinfo=UTC)
    assert await made.change(org, "nightly", **why) == later
    other = await made.change(org, "nightly", payload={"room": "hall", "depth": 2}, missed="all", **why)
    assert (other.payload, other.missed_policy, other.cron) == (
        {"room": "hall", "depth": 2},
        "all",
        "0 4 * * *",
    )
    with pytest.raises(errors.ContractError, match=r"payload\.rooms"):
        await made.change(org, "nightly", payload={"rooms": 1}, **why)
    with pytest.raises(errors.ContractError, match="none of its months has such a day"):
        await made.change(org, "nightly", cron="0 0 30 2 *", **why)
    with pytest.raises(errors.UnknownSchedule):
        await made.change(org, "daily", missed="all", **why)
    assert [row[0] for row in audited(sql)] == ["schedule.created", *["schedule.updated"] * 2]


async def test_schedules_are_listed_in_pages(made: Schedules, org: uuid.UUID) -> None:
    for name in ("c", "a b", "a"):
        await made.create(org, name, **NIGHTLY)
    first = await made.page(org, limit=2)
    assert [one.name for one in first.schedules] == ["a", "a b"]
    rest = await made.page(org, limit=2, after=first.after)
    assert ([one.name for one in rest.schedules], rest.after) == (["c"], None)
    assert await made.list(org) == [*first.schedules, *rest.schedules]
