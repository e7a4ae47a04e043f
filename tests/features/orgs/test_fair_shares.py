"""The shares of orgs in the workers: running and queued jobs, limits, and orgs with less than a fair part."""

from __future__ import annotations

import psycopg
import pytest

from duly import Duly
from duly.features.orgs import fair_shares
from tests.features.overview.sample_jobs import fill
from tests.worker.blocking_jobs import WHY, BlockingJobs, create_orgs, enqueue, running_workers


async def test_active_orgs_have_their_share_their_limits_and_their_oldest_wait(app: Duly) -> None:
    blocking = BlockingJobs(app)
    busy, limited, paused, idle = await create_orgs(app, 4)
    await app.limits.set(limited, max_running=1, max_waiting=50, **WHY)
    await app.limits.pause(paused, **WHY)
    for org, n in ((busy, 5), (limited, 4), (paused, 2)):
        await enqueue(blocking.build, org, range(n))
    async with running_workers(app, slots=6):
        await blocking.wait_until_started(6)
        seen = await app.overview.shares()
        every = await app.overview.all_shares()
        blocking.release.set()
    by_org = {share.org_id: share for share in seen.shares}
    assert set(by_org) == {busy, limited, paused}
    assert (seen.slots, seen.running, seen.active, seen.more) == (6, 6, 3, False)
    assert [by_org[org].running for org in (busy, limited, paused)] == [5, 1, 0]
    assert [by_org[org].waiting.count for org in (busy, limited, paused)] == [0, 3, 2]
    assert by_org[busy].part == pytest.approx(5 / 6)
    assert {share.fair_part for share in seen.shares} == {1 / 3}
    assert (by_org[limited].max_running, by_org[limited].max_waiting) == (1, 50)
    assert (by_org[limited].held_back, by_org[paused].held_back, by_org[busy].held_back) == (
        True,
        True,
        False,
    )
    assert not any(share.short for share in seen.shares), "their own limits delay them"
    assert [share.org_id for share in seen.shares][-1] == busy, "orgs that wait come first"
    assert by_org[busy].oldest_waiting_age is None
    assert by_org[paused].oldest_waiting_age is not None
    assert {busy, limited, paused, idle} < {share.org_id for share in every.shares}
    [nothing] = [share for share in every.shares if share.org_id == idle]
    assert (nothing.running, nothing.waiting.count, nothing.part) == (0, 0, 0.0)


async def test_an_org_that_waits_with_less_than_its_fair_part_is_short(
    app: Duly, sql: psycopg.Connection
) -> None:
    first, second = await create_orgs(app, 2)
    fill(sql, first, second)
    sql.execute(
        "update duly.job_states set status = 'queued' where org_id = %s and status in ('running', 'partial')",
        [second],
    )
    seen = await app.overview.shares()
    by_org = {share.org_id: share for share in seen.shares}
    assert (by_org[first].running > 0, by_org[second].running) == (True, 0)
    assert (by_org[second].short, by_org[second].fair_part) == (True, 0.5)
    assert seen.short == 1 + by_org[first].short


async def test_shares_come_in_pages_and_scans_are_bounded(
    app: Duly, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    orgs = await create_orgs(app, 5)
    fill(sql, *orgs)
    found, after = [], None
    while True:
        page = await app.overview.all_shares(limit=2, after=after)
        found += [share.org_id for share in page.shares]
        after = page.after
        if after is None:
            break
    assert found == sorted(found)
    assert set(orgs) <= set(found)
    for name, value in {"_MAX_STEPS": 3, "_MAX_ACTIVE_SHARES": 2, "_MAX_COUNT": 1}.items():
        monkeypatch.setattr(fair_shares, name, value)
    few = await app.overview.shares()
    assert (len(few.shares), few.more) == (2, True)
    assert all(share.waiting.count for share in few.shares), "orgs that wait are not left out"
    assert {str(share.waiting) for share in few.shares} == {"1+"}
