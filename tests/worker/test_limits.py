"""Workers respect limits, rates, quotas and pauses."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duly import Duly, Retry, context, errors
from duly.features.limits.service import Limits
from duly.features.queues.service import Queues
from tests.features.schedules.scheduler_clock import NOON, Clock
from tests.worker.blocking_jobs import (
    ADMIN,
    NEVER,
    SOON,
    WHY,
    BlockingJobs,
    assert_completed,
    create_orgs,
    create_paused_orgs,
    enqueue,
    fetch_value,
    running_counts,
    running_workers,
    wait_until_idle,
)


async def test_an_org_never_has_more_running_jobs_than_its_limit(
    app: Duly, blocking: BlockingJobs, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    await Limits(app).set(org, max_running=2, **WHY)
    handles = await enqueue(blocking.build, org, range(20))
    async with running_workers(app, 2, poll=SOON) as workers:
        await blocking.wait_until_started(2)
        await wait_until_idle(*workers)
        assert len(blocking.started) == 2
        assert (await Limits(app).get(org)).running == 2
        blocking.release.set()
        await assert_completed(handles)
    assert blocking.max_running[str(org)] == 2
    assert running_counts(sql) == {0}


async def test_a_job_type_is_limited_across_orgs_and_others_are_not(
    app: Duly, blocking: BlockingJobs, sql: psycopg.Connection
) -> None:
    await Limits(app).set(job_type="site.build", max_running=3, **WHY)
    handles = []
    for org in await create_orgs(app, 4):
        handles += await enqueue(blocking.build, org, range(6))
        handles += await enqueue(blocking.dig, org, range(6))
    async with running_workers(app, 2, poll=SOON) as workers:
        await blocking.wait_until_started(3 + 24)
        await wait_until_idle(*workers)
        assert len(blocking.started) == 3 + 24
        blocking.release.set()
        await assert_completed(handles)
    assert (blocking.max_running["site.build"], blocking.max_running["site.dig"]) == (3, 24)
    assert running_counts(sql) == {0}


async def test_a_job_type_of_an_org_is_limited_there_only(
    app: Duly, blocking: BlockingJobs, sql: psycopg.Connection
) -> None:
    limited, unlimited = await create_orgs(app, 2)
    await Limits(app).set(limited, "site.build", max_running=1, **WHY)
    handles = []
    for org in (limited, unlimited):
        handles += await enqueue(blocking.build, org, range(5))
        handles += await enqueue(blocking.dig, org, range(5))
    async with running_workers(app, poll=SOON) as workers:
        await blocking.wait_until_started(1 + 15)
        await wait_until_idle(*workers)
        assert len(blocking.started) == 1 + 15
        blocking.release.set()
        await assert_completed(handles)
    assert blocking.max_running[f"{limited} site.build"] == 1
    assert (blocking.max_running[f"{unlimited} site.build"], blocking.max_running[f"{limited} site.dig"]) == (
        5,
        5,
    )
    assert running_counts(sql) == {0}


async def test_the_narrowest_of_several_limits_holds(
    app: Duly, blocking: BlockingJobs, sql: psycopg.Connection
) -> None:
    org, other = await create_orgs(app, 2)
    await Limits(app).set(org, max_running=3, **WHY)
    await Limits(app).set(job_type="site.build", max_running=4, **WHY)
    await Limits(app).set(org, "site.build", max_running=2, **WHY)
    handles = [*await enqueue(blocking.build, org, range(8)), *await enqueue(blocking.dig, org, range(8))]
    handles += await enqueue(blocking.build, other, range(8))
    blocking.release.set()
    async with running_workers(app, 2, poll=SOON):
        await assert_completed(handles)
    assert blocking.max_running[f"{org} site.build"] <= 2
    assert (blocking.max_running[str(org)], blocking.max_running["site.build"]) <= (3, 4)
    assert running_counts(sql) == {0}


async def test_a_new_limit_counts_jobs_that_already_run(
    app: Duly, blocking: BlockingJobs, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    limits = Limits(app)
    first = await enqueue(blocking.build, org, range(5))
    async with running_workers(app, poll=SOON) as [worker]:
        await blocking.wait_until_started(5)
        for scope in ((org, None), (None, "site.build"), (org, "site.build")):
            assert (await limits.set(*scope, max_running=4, **WHY)).running == 5
        assert (await limits.set(None, "site.dig", max_running=4, **WHY)).running == 0
        second = await enqueue(blocking.build, org, range(5, 10))
        await wait_until_idle(worker)
        assert len(blocking.started) == 5
        blocking.release.set()
        await assert_completed([*first, *second])
    assert running_counts(sql) == {0}


async def test_a_limit_that_was_lifted_and_set_again_counts_running_jobs(
    app: Duly, blocking: BlockingJobs, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    limits = Limits(app)
    await limits.set(org, max_running=3, **WHY)
    handles = await enqueue(blocking.build, org, range(8))
    async with running_workers(app, poll=SOON) as [worker]:
        await blocking.wait_until_started(3)
        assert (await limits.set(org, max_running=None, **WHY)).running == 3
        await blocking.wait_until_started(8)
        assert (await limits.set(org, max_running=1, **WHY)).running == 8
        handles += await enqueue(blocking.build, org, range(8, 12))
        blocking.release.set()
        await assert_completed(handles)
        await wait_until_idle(worker)
    assert running_counts(sql) == {0}


@pytest.mark.parametrize("scope", ["org", "type", "both"])
async def test_jobs_start_no_faster_than_their_rate(
    app: Duly, blocking: BlockingJobs, org: uuid.UUID, sql: psycopg.Connection, scope: str
) -> None:
    clock = Clock(sql, NOON)
    scope_key = {"org": (org, None), "type": (None, "site.build"), "both": (org, "site.build")}[scope]
    await Limits(app).set(*scope_key, starts_per_second=2, burst=3, **WHY)
    handles = await enqueue(blocking.build, org, range(10))
    blocking.release.set()
    async with running_workers(app, 2, poll=SOON) as workers:
        for seconds, started in {0: 3, 0.4: 3, 0.5: 4, 1: 5, 60: 8, 60.5: 9, 61: 10}.items():
            clock.set(NOON + timedelta(seconds=seconds))
            await wait_until_idle(*workers)
            query = "select count(*) from duly.event_log where event_type = 'job.started'"
            assert fetch_value(sql, query) == started, f"after {seconds} s"
        await assert_completed(handles)
    limit = await Limits(app).get(*scope_key)
    assert (limit.running, limit.available) == (0, 0)


async def test_an_org_cannot_enqueue_beyond_its_quota_of_waiting_jobs(
    app: Duly, blocking: BlockingJobs, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    await Limits(app).set(org, max_waiting=3, **WHY)
    [first, *_] = await enqueue(blocking.build, org, range(3))
    with pytest.raises(errors.LimitExceeded, match="no more than 3 jobs") as caught:
        await enqueue(blocking.dig, org, [7])
    assert (caught.value.field, bool(caught.value.fix)) == ("org_id", True)
    with pytest.raises(errors.LimitExceeded):
        await enqueue(blocking.build, org, [0, 7])
    [again] = await enqueue(blocking.build, org, [0])
    assert (again.job_id, again.created) == (first.job_id, False)
    for table in ("job_records", "ready", "key_ledger", "all_events"):
        assert fetch_value(sql, f"select count(*) from duly.{table}") == 3
    [other] = await create_orgs(app, 1)
    assert (await enqueue(blocking.build, other, [7]))[0].created

    async with running_workers(app, poll=SOON):
        await blocking.wait_until_started(4)
        more = await enqueue(blocking.build, org, [7, 8, 9])
        blocking.release.set()
        await assert_completed(more)


@pytest.mark.parametrize("paused_scope", ["queue", "org", "type", "type of org"])
async def test_paused_jobs_wait_while_other_jobs_run(
    app: Duly, blocking: BlockingJobs, paused_scope: str, sql: psycopg.Connection
) -> None:
    mine, theirs = await create_orgs(app, 2)
    scope: dict[str, Any] = {
        "org": {"org_id": mine},
        "type": {"job_type": "site.ship"},
        "type of org": {"org_id": mine, "job_type": "site.ship"},
    }.get(paused_scope, {})
    paused = Queues(app) if paused_scope == "queue" else Limits(app)
    target = {"queue": "q:exports"} if paused_scope == "queue" else scope
    blocking.release.set()
    async with running_workers(app, slots=2, poll=NEVER):
        await paused.pause(**target, **WHY)
        held = await enqueue(blocking.ship, mine, range(5))
        others = await enqueue(blocking.build, theirs, range(30))
        if paused_scope != "org":
            others += await enqueue(blocking.build, mine, range(30))
        if paused_scope in ("org", "type of org"):
            others += await enqueue(blocking.ship, theirs, range(30))
        await assert_completed(others)
        assert {(await handle.status()).status for handle in held} == {"queued"}
        await paused.resume(**target, **WHY)
        await assert_completed(held)
    assert running_counts(sql) <= {0}


async def test_queued_jobs_move_to_a_lane_of_their_own_when_their_type_gets_a_limit(
    app: Duly, blocking: BlockingJobs, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    handles = []
    for priority in (0, 5, -5):
        handles += await enqueue(
            blocking.build, org, range(100 * priority, 100 * priority + 30), priority=priority
        )
        handles += await enqueue(blocking.dig, org, [9999 + priority], priority=priority)
    await Limits(app).set(job_type="site.build", max_running=1, **WHY)
    blocking.release.set()
    async with running_workers(app, slots=4, poll=NEVER):
        await assert_completed(handles)
    built = [n // 100 for n in blocking.started if n < 9000]
    assert built == [5] * 30 + [0] * 30 + [-5] * 30
    assert blocking.max_running["site.build"] == 1
    assert fetch_value(sql, "select count(*) from duly.ready") == 0
    assert running_counts(sql) == {0}


async def test_a_retried_or_scheduled_job_returns_to_the_lane_of_its_type(
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
        at = fetch_value(sql, "select now() + interval '50 milliseconds'")
        handle = await flaky.options(scheduled_for=at).enqueue()
    async with running_workers(app, poll=SOON):
        assert await handle.result(60) == 3
    assert running_counts(sql) == {0}


async def test_a_thousand_paused_orgs_do_not_starve_another_org(
    app: Duly, blocking: BlockingJobs, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    await create_paused_orgs(app, blocking, sql, 1000)
    blocking.release.set()
    async with running_workers(app, slots=1, poll=NEVER):
        for _ in range(3):
            await assert_completed(
                await enqueue(blocking.build, org, range(len(blocking.started), len(blocking.started) + 5))
            )
        await assert_completed(await enqueue(blocking.ship, org, [0]))
    assert set(blocking.max_running) == {
        str(org),
        "site.build",
        "site.ship",
        f"{org} site.build",
        f"{org} site.ship",
    }
