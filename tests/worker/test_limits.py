"""Limits, rates, quotas and pauses, held by real workers."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duly import Duly, Retry, context, errors
from duly.features.limits.service import Limits
from duly.features.queues.service import Queues
from tests.features.schedules.ticking import NOON, Clock
from tests.worker.site import (
    ADMIN,
    NEVER,
    SOON,
    WHY,
    Site,
    completed,
    counters,
    enqueue,
    looked,
    make_orgs,
    one,
    shut_orgs,
    working,
)


@pytest.fixture
def site(app: Duly) -> Site:
    return Site(app)


async def test_an_org_never_has_more_running_than_its_limit(
    app: Duly, site: Site, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    await Limits(app).set(org, max_running=2, **WHY)
    handles = await enqueue(site.build, org, range(20))
    async with working(app, 2, poll=SOON) as workers:
        await site.until_entered(2)
        await looked(*workers)
        assert len(site.entered) == 2
        assert (await Limits(app).get(org)).running == 2
        site.doors.set()
        await completed(handles)
    assert site.most[str(org)] == 2
    assert counters(sql) == {0}


async def test_a_job_type_is_limited_across_orgs_and_others_are_not(
    app: Duly, site: Site, sql: psycopg.Connection
) -> None:
    await Limits(app).set(job_type="site.build", max_running=3, **WHY)
    handles = []
    for org in await make_orgs(app, 4):
        handles += await enqueue(site.build, org, range(6))
        handles += await enqueue(site.dig, org, range(6))
    async with working(app, 2, poll=SOON) as workers:
        await site.until_entered(3 + 24)
        await looked(*workers)
        assert len(site.entered) == 3 + 24
        site.doors.set()
        await completed(handles)
    assert (site.most["site.build"], site.most["site.dig"]) == (3, 24)
    assert counters(sql) == {0}


async def test_a_job_type_of_an_org_is_limited_there_only(
    app: Duly, site: Site, sql: psycopg.Connection
) -> None:
    narrow, wide = await make_orgs(app, 2)
    await Limits(app).set(narrow, "site.build", max_running=1, **WHY)
    handles = []
    for org in (narrow, wide):
        handles += await enqueue(site.build, org, range(5))
        handles += await enqueue(site.dig, org, range(5))
    async with working(app, poll=SOON) as workers:
        await site.until_entered(1 + 15)
        await looked(*workers)
        assert len(site.entered) == 1 + 15
        site.doors.set()
        await completed(handles)
    assert site.most[f"{narrow} site.build"] == 1
    assert (site.most[f"{wide} site.build"], site.most[f"{narrow} site.dig"]) == (5, 5)
    assert counters(sql) == {0}


async def test_the_narrowest_of_several_limits_holds(app: Duly, site: Site, sql: psycopg.Connection) -> None:
    org, other = await make_orgs(app, 2)
    await Limits(app).set(org, max_running=3, **WHY)
    await Limits(app).set(job_type="site.build", max_running=4, **WHY)
    await Limits(app).set(org, "site.build", max_running=2, **WHY)
    handles = [*await enqueue(site.build, org, range(8)), *await enqueue(site.dig, org, range(8))]
    handles += await enqueue(site.build, other, range(8))
    site.doors.set()
    async with working(app, 2, poll=SOON):
        await completed(handles)
    assert site.most[f"{org} site.build"] <= 2
    assert (site.most[str(org)], site.most["site.build"]) <= (3, 4)
    assert counters(sql) == {0}


async def test_a_limit_counts_what_runs_when_it_is_set(
    app: Duly, site: Site, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    limits = Limits(app)
    first = await enqueue(site.build, org, range(5))
    async with working(app, poll=SOON) as [worker]:
        await site.until_entered(5)
        for scope in ((org, None), (None, "site.build"), (org, "site.build")):
            assert (await limits.set(*scope, max_running=4, **WHY)).running == 5
        assert (await limits.set(None, "site.dig", max_running=4, **WHY)).running == 0
        second = await enqueue(site.build, org, range(5, 10))
        await looked(worker)
        assert len(site.entered) == 5
        site.doors.set()
        await completed([*first, *second])
    assert counters(sql) == {0}


async def test_a_limit_that_was_lifted_and_set_again_still_counts_right(
    app: Duly, site: Site, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    limits = Limits(app)
    await limits.set(org, max_running=3, **WHY)
    handles = await enqueue(site.build, org, range(8))
    async with working(app, poll=SOON) as [worker]:
        await site.until_entered(3)
        assert (await limits.set(org, max_running=None, **WHY)).running == 3
        await site.until_entered(8)
        assert (await limits.set(org, max_running=1, **WHY)).running == 8
        handles += await enqueue(site.build, org, range(8, 12))
        site.doors.set()
        await completed(handles)
        await looked(worker)
    assert counters(sql) == {0}


@pytest.mark.parametrize("scope", ["org", "type", "both"])
async def test_jobs_start_no_faster_than_their_rate(
    app: Duly, site: Site, org: uuid.UUID, sql: psycopg.Connection, scope: str
) -> None:
    clock = Clock(sql, NOON)
    whose = {"org": (org, None), "type": (None, "site.build"), "both": (org, "site.build")}[scope]
    await Limits(app).set(*whose, starts_per_second=2, burst=3, **WHY)
    handles = await enqueue(site.build, org, range(10))
    site.doors.set()
    async with working(app, 2, poll=SOON) as workers:
        for seconds, started in {0: 3, 0.4: 3, 0.5: 4, 1: 5, 60: 8, 60.5: 9, 61: 10}.items():
            clock.set(NOON + timedelta(seconds=seconds))
            await looked(*workers)
            query = "select count(*) from duly.event_log where event_type = 'job.started'"
            assert one(sql, query) == started, f"after {seconds} s"
        await completed(handles)
    limit = await Limits(app).get(*whose)
    assert (limit.running, limit.available) == (0, 0)


async def test_an_org_may_have_no_more_waiting_than_its_quota(
    app: Duly, site: Site, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    await Limits(app).set(org, max_waiting=3, **WHY)
    [first, *_] = await enqueue(site.build, org, range(3))
    with pytest.raises(errors.LimitExceeded, match="no more than 3 jobs") as caught:
        await enqueue(site.dig, org, [7])
    assert (caught.value.field, bool(caught.value.fix)) == ("org_id", True)
    with pytest.raises(errors.LimitExceeded):
        await enqueue(site.build, org, [0, 7])
    [again] = await enqueue(site.build, org, [0])
    assert (again.job_id, again.created) == (first.job_id, False)
    for table in ("job_records", "ready", "ledger", "event_log"):
        assert one(sql, f"select count(*) from duly.{table}") == 3
    [other] = await make_orgs(app, 1)
    assert (await enqueue(site.build, other, [7]))[0].created

    async with working(app, poll=SOON):
        await site.until_entered(4)
        more = await enqueue(site.build, org, [7, 8, 9])
        site.doors.set()
        await completed(more)


@pytest.mark.parametrize("what", ["queue", "org", "type", "type of org"])
async def test_what_is_paused_waits_while_other_work_goes_on(
    app: Duly, site: Site, what: str, sql: psycopg.Connection
) -> None:
    mine, theirs = await make_orgs(app, 2)
    scope: dict[str, Any] = {
        "org": {"org_id": mine},
        "type": {"job_type": "site.ship"},
        "type of org": {"org_id": mine, "job_type": "site.ship"},
    }.get(what, {})
    paused = Queues(app) if what == "queue" else Limits(app)
    target = {"queue": "q:exports"} if what == "queue" else scope
    site.doors.set()
    async with working(app, slots=2, poll=NEVER):
        await paused.pause(**target, **WHY)
        held = await enqueue(site.ship, mine, range(5))
        others = await enqueue(site.build, theirs, range(30))
        if what != "org":
            others += await enqueue(site.build, mine, range(30))
        if what in ("org", "type of org"):
            others += await enqueue(site.ship, theirs, range(30))
        await completed(others)
        assert {(await handle.status()).status for handle in held} == {"queued"}
        await paused.resume(**target, **WHY)
        await completed(held)
    assert counters(sql) <= {0}


async def test_jobs_that_wait_when_their_type_gets_a_gate_move_to_its_lane(
    app: Duly, site: Site, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    handles = []
    for priority in (0, 5, -5):
        handles += await enqueue(
            site.build, org, range(100 * priority, 100 * priority + 30), priority=priority
        )
        handles += await enqueue(site.dig, org, [9999 + priority], priority=priority)
    await Limits(app).set(job_type="site.build", max_running=1, **WHY)
    site.doors.set()
    async with working(app, slots=4, poll=NEVER):
        await completed(handles)
    built = [n // 100 for n in site.entered if n < 9000]
    assert built == [5] * 30 + [0] * 30 + [-5] * 30
    assert site.most["site.build"] == 1
    assert one(sql, "select count(*) from duly.ready") == 0
    assert counters(sql) == {0}


async def test_a_job_that_retries_or_was_scheduled_comes_back_into_its_lane(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    tries = 0

    @app.job("site.flaky", category="notification")
    async def flaky() -> int:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise Retry("not yet", after=timedelta(milliseconds=1))
        return tries

    await Limits(app).set(job_type="site.flaky", max_running=1, **WHY)
    with context(org_id=org, actor=ADMIN):
        at = one(sql, "select now() + interval '50 milliseconds'")
        handle = await flaky.options(scheduled_for=at).enqueue()
    async with working(app, poll=SOON):
        assert await handle.result(60) == 3
    assert counters(sql) == {0}


async def test_a_thousand_shut_orgs_do_not_starve_an_open_one(
    app: Duly, site: Site, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    await shut_orgs(app, site, sql, 1000)
    site.doors.set()
    async with working(app, slots=1, poll=NEVER):
        for _ in range(3):
            await completed(await enqueue(site.build, org, range(len(site.entered), len(site.entered) + 5)))
        await completed(await enqueue(site.ship, org, [0]))
    assert set(site.most) == {str(org), "site.build", "site.ship", f"{org} site.build", f"{org} site.ship"}
