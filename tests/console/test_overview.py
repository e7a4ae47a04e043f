"""The pages of overview, workers and orgs: access, figures and draining."""

from __future__ import annotations

import re
import uuid
from collections.abc import Set
from html import unescape

import psycopg
import pytest
from fastapi import FastAPI

from duly import Duly
from duly.console import sparklines as sparks
from duly.core.principal import Principal
from duly.worker.workers_store import WorkerIdentity, register
from tests.console.conftest import OPERATOR, Arrives, Person, Post, words
from tests.features.overview.sample_jobs import fill
from tests.worker.blocking_jobs import create_orgs
from tests.worker.working import seconds

ONLY_PLATFORM = ("/console/workers", "/console/orgs", "/console/orgs?show=all")


@pytest.fixture
async def worker(app: Duly) -> uuid.UUID:
    """A registered worker without jobs."""
    who = WorkerIdentity(uuid.uuid4(), "till <1>", "host-a", 7, "0.8.0", ("q:default",), 4, seconds(3600))
    async with (await app.resources()).database.engine() as conn:
        await register(conn, who)
    return who.worker_id


async def test_an_org_sees_its_own_figures_and_platform_operators_those_of_all(
    app: Duly, org: uuid.UUID, arrives: Arrives, platform: Person, sql: psycopg.Connection
) -> None:
    other, empty = await create_orgs(app, 2)
    fill(sql, org, other)
    sql.execute("update duly.dead_letters set error_message = 'theirs ' || org_id::text")
    mine = await arrives(*OPERATOR)
    for path in ("/console", f"/console?org={other}", f"/console?org={uuid.uuid4()}"):
        seen = words(await mine.get(path))
        assert f"theirs {org}" in seen
        assert str(other) not in seen
        assert "Database" not in seen
    nothing = await arrives(*OPERATOR, org=empty)
    assert "No alerts" in words(await nothing.get("/console"))
    assert "Database" in words(await platform.get("/console"))
    one_of_them = words(await platform.get(f"/console?org={other}"))
    assert f"theirs {other}" in one_of_them
    assert f"theirs {org}" not in one_of_them
    assert (await platform.get(f"/console?org={uuid.uuid4()}")).status_code == 404


async def test_every_link_of_these_pages_works(
    app: Duly, org: uuid.UUID, arrives: Arrives, platform: Person, sql: psycopg.Connection, worker: uuid.UUID
) -> None:
    fill(sql, org)
    kinds = [
        "queue_depth",
        "oldest_age",
        "dead_rate",
        "no_worker",
        "stale_runs",
        "relay_lag",
        "webhook_failing",
    ]
    sql.execute(
        """insert into duly.alerts (org_id, alert_id, kind, target, severity, summary, measured, threshold)
           select %s, gen_random_uuid(), k, 'q:default', 'warning', 'x', 7200, 3 from unnest(%s::text[]) k""",
        [org, kinds],
    )
    followed = 0
    for person, pages in (
        (await arrives(*OPERATOR), ("/console",)),
        (platform, ("/console", f"/console?org={org}", "/console/workers", "/console/orgs")),
    ):
        for page in pages:
            body = (await person.get(page)).text.partition('id="live"')[2].partition("</main>")[0]
            links = {unescape(found) for found in re.findall(r'href="(/[^"]+)"', body)}
            followed += len(links)
            for link in links:
                assert (await person.get(link)).status_code == 200, f"{page} -> {link}"
            inside = {unescape(found) for found in re.findall(r'href="#([^"]+)"', body)}
            assert inside <= set(re.findall(r'id="([^"]+)"', body)), page
    assert followed > 20


async def test_pages_of_the_installation_need_the_platform_scope(
    viewer: Person, admin: Person, platform: Person, worker: uuid.UUID, app: Duly
) -> None:
    for path in ONLY_PLATFORM:
        for person in (viewer, admin):
            assert (await person.get(path)).status_code in (403, 404)
        assert (await platform.get(path)).status_code == 200
    for person in (viewer, admin):
        assert "/console/workers" not in (await person.get("/console")).text
        answer = await Post(person)(f"/console/workers/{worker}/drain", reason="for fun")
        assert answer.status_code in (403, 404)
    [left] = await app.queues.workers()
    assert left.drain_requested_at is None


async def test_a_worker_is_drained_with_a_reason(platform: Person, worker: uuid.UUID, app: Duly) -> None:
    place, post = f"/console/workers/{worker}/drain", Post(platform)
    assert "till <1>" in words(await platform.get("/console/workers"))
    without = await post(place, reason=" ")
    assert (without.status_code, "till <1>" in words(without)) == (422, True)
    unproven = await platform.post(place, data={"reason": "no proof"})
    assert "/login" in unproven.headers["location"]
    [left] = await app.queues.workers()
    assert left.drain_requested_at is None
    done = await post(place, reason="a new version")
    assert (done.status_code, done.headers["location"]) == (303, "/console/workers")
    shown = words(await platform.get("/console/workers"))
    assert "Drain of till <1> requested." in shown
    assert "a new version" in shown
    assert (await post(f"/console/workers/{uuid.uuid4()}/drain", reason="who")).status_code == 404
    assert (await post("/console/workers/nobody/drain", reason="who")).status_code == 404


async def test_a_principal_with_restricted_subjects_sees_counts_but_no_errors(
    api: FastAPI, org: uuid.UUID, arrives: Arrives, sql: psycopg.Connection
) -> None:
    fill(sql, org)
    sql.execute("update duly.dead_letters set error_message = 'Mrs Smith has no address'")

    async def of_one(who: Principal, subjects: Set[str], action: str) -> Set[str]:
        return {one for one in subjects if one == "doc-1"}

    api.state.service.rules.append(of_one)
    seen = words(await (await arrives(*OPERATOR)).get("/console"))
    assert "Mrs Smith" not in seen
    assert "You do not have access to every subject" in seen
    assert "Failed jobs (24 h)" in seen


def test_sparklines_scale_to_their_peak_and_are_empty_without_values() -> None:
    drawn = sparks.bars([2, 0, 4], [2, 0, 0])
    assert drawn.peak == 4
    assert drawn.lower.count("M") == 2
    assert (drawn.lower.count("v-12h"), drawn.upper.count("v-12h")) == (1, 1)
    assert sparks.bars([0, 0], [0, 0]) == ("", "", 0)
    gap = sparks.line([1.0, 2.0, None, 0.5])
    assert (gap.path.count("M"), gap.peak) == (2, 2.0)
    assert sparks.line([None, None]) == ("", 0.0)
