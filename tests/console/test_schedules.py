"""The pages of schedules: next ticks, history, and the actions of operators."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import AsyncIterator

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from duly import Actor, Duly
from duly.features.schedules.scheduler import Scheduler
from tests.console.conftest import Person, Post, words
from tests.features.schedules.scheduler_clock import ADMIN, MINUTE, NOON, Clock, catch_up, declare
from tests.http.conftest import served

NAME = "house/attic <b>"


@pytest.fixture
async def clock(app: Duly, org: uuid.UUID, sql: psycopg.Connection) -> Clock:
    """The schedule was created five minutes ago, and the scheduler was down for the first four."""
    made = Clock(sql, NOON)
    declare(app)
    said = {"cron": "* * * * *", "job_type": "house.clean", "timezone": "Europe/Berlin", "actor": ADMIN}
    await app.schedules.create(org, NAME, payload={"room": "attic"}, **said)
    made.set(NOON + 5 * MINUTE)
    await catch_up(Scheduler(app))
    return made


def places(page: str) -> list[str]:
    """Return the links of the rows."""
    return re.findall(r'data-row>\s*<th[^>]*><a[^>]* href="([^"]+)"', page)


async def test_the_page_of_a_schedule_shows_its_ticks_in_its_time_zone(viewer: Person, clock: Clock) -> None:
    listed = await viewer.get("/console/schedules")
    assert "house/attic <b> house.clean Active * * * * * Europe/Berlin" in words(listed)
    assert listed.text.count('data-state="missed"') == 4
    [place] = places(listed.text)
    assert place == "/console/schedules/house/attic%20%3Cb%3E"
    shown = await viewer.get(place)
    said = words(shown)
    assert "Sun 2026-11-15 13:06 2026-11-15 12:06:00 UTC" in said, "the next"
    assert said.count("Missed") >= 4
    assert "Sun 2026-11-15 13:05 2026-11-15 12:05:00 UTC Queued" in said
    assert "the latest is caught up" in said
    assert len(re.findall(r'id="next-', shown.text)) == 5
    assert "Run now" not in said, "who may only look is offered nothing"
    german = words(await viewer.get(f"{place}?lang=de"))
    assert "So 2026-11-15 13:06" in german
    assert (await viewer.get("/console/schedules/none")).status_code == 404


async def test_an_operator_runs_pauses_and_resumes_a_schedule(
    app: Duly, org: uuid.UUID, operator: Person, viewer: Person, clock: Clock
) -> None:
    [place] = places((await operator.get("/console/schedules")).text)
    for verb in ("run", "pause", "resume"):
        assert (await Post(viewer)(f"{place}/{verb}", reason="because")).status_code == 403
        assert (await Post(operator)(f"{place}/{verb}", reason=" ")).status_code == 422
    ran = await Post(operator)(f"{place}/run", reason="the auditor asked")
    [job] = [one for one in (await app.jobs.list(org)).jobs if one.actor_type == "api_key"]
    assert (ran.status_code, ran.headers["location"]) == (303, f"/console/jobs/{job.job_id}")
    paused = await Post(operator)(f"{place}/pause", reason="painting <i>")
    assert paused.headers["location"] == place
    said = words(await operator.get(place))
    assert f"{NAME} paused." in said
    assert re.search(r"Paused by api_key:\S+: painting <i>", said)
    assert "these runs will be recorded as missed" in said
    await Post(operator)(f"{place}/resume", reason="dry")
    assert (await app.schedules.get(org, NAME)).paused_at is None


async def test_the_page_after_a_change_is_not_a_cached_one(
    api: FastAPI, operator: Person, clock: Clock
) -> None:
    [place] = places((await operator.get("/console/schedules")).text)
    headers = {"accept": "text/event-stream", "cookie": f"duly={operator.cookies['duly']}"}
    async with served(api) as url, httpx.AsyncClient(base_url=url) as browser:
        for state in ("Active", "Paused"):
            async with browser.stream("GET", place, headers=headers) as stream:
                told = [line async for line in first_page(stream)]
            assert f">{state}</span>" in told[0]
            await Post(operator)(f"{place}/pause", reason="painting")


async def first_page(stream: httpx.Response) -> AsyncIterator[str]:
    async for line in stream.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))
            return


async def test_a_failing_schedule_shows_its_error(
    operator: Person, clock: Clock, sql: psycopg.Connection
) -> None:
    sql.execute("update duly.schedules set last_error = 'no room', retry_at = now(), cron = 'nonsense'")
    said = words(await operator.get(places((await operator.get("/console/schedules")).text)[0]))
    assert "The job could not be created: no room" in said
    assert "no further runs" in said


async def test_ticks_and_schedules_are_paginated(
    app: Duly, org: uuid.UUID, viewer: Person, platform: Person, clock: Clock
) -> None:
    for n in range(26):
        await app.schedules.create(
            org, f"more {n:02}", cron="0 3 * * *", job_type="house.clean", actor=Actor.system("x")
        )
    first = await viewer.get("/console/schedules")
    older = re.search(r'rel="next" href="([^"]+)"', first.text)
    assert older
    second = await viewer.get(f"/console/schedules{older[1]}")
    assert len(places(first.text)) + len(places(second.text)) == 27
    clock.set(NOON + 60 * MINUTE)
    await catch_up(Scheduler(app))
    there = f"{places(first.text)[0]}?org={org}"
    whole = await platform.get(there)
    more = re.search(r'rel="next" href="([^"]+)"', whole.text)
    assert more
    assert f"org={org}" in more[1]
    rest = await platform.get(f"{there.partition('?')[0]}{more[1].replace('&amp;', '&')}")
    counted = [len(re.findall(r'id="tick-', page.text)) for page in (whole, rest)]
    assert counted == [50, 10]
