"""Events as pages and as streams: each once, in order, to the end, wherever the reader left off."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from duly import Context, Duly
from duly.http.options import HttpOptions
from tests.http.conftest import ANNA, served
from tests.worker.working import working

STREAM = {"accept": "text/event-stream"}


@pytest.fixture
def options() -> HttpOptions:
    return HttpOptions(
        stream_heartbeat=timedelta(milliseconds=100),
        streams_max=2,
        authentication_ttl=timedelta(milliseconds=1),
    )


@pytest.fixture
def go(app: Duly) -> asyncio.Event:
    event = asyncio.Event()

    @app.job("report.build", allows_partial=True)
    async def build(ctx: Context) -> None:
        await event.wait()
        for number in range(5):
            await ctx.partial({"n": number}, percent=number * 20)

    return event


@pytest.fixture
async def near(api: FastAPI, key: str) -> AsyncIterator[httpx.AsyncClient]:
    """A caller over a real connection."""
    async with served(api) as address:
        headers = {"authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(base_url=address, headers=headers, timeout=30) as client:
            yield client


async def told(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
    """The events of a stream; its comments too, under their own name."""
    part: dict[str, Any] = {}
    async for line in lines:
        if line.startswith(":"):
            yield {"comment": line}
        elif line:
            name, _, value = line.partition(": ")
            part[name] = value
        elif part:
            if "data" in part:
                yield {**part, "data": json.loads(part["data"])}
            part = {}


async def test_a_stream_has_every_event_once_and_ends(
    near: httpx.AsyncClient, app: Duly, go: asyncio.Event
) -> None:
    said = (await near.post("/v1/jobs", json={"job_type": "report.build"})).json()
    seen: list[dict[str, Any]] = []
    async with working(app), near.stream("GET", said["events_url"], headers=STREAM) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        async for one in told(answer.aiter_lines()):
            if "comment" in one:
                go.set()  # it lives though nothing happens
            else:
                seen.append(one)
    assert go.is_set()
    numbers = [int(one["id"]) for one in seen]
    assert numbers == list(range(1, len(seen) + 1))
    kinds = [one["event"] for one in seen]
    assert (kinds[0], kinds[-1], kinds.count("job.partial")) == ("job.queued", "job.completed", 5)
    assert all(one["data"]["event_seq"] == int(one["id"]) for one in seen)
    page = (await near.get(said["events_url"])).json()
    assert ([one["data"] for one in seen], page["after"]) == (page["events"], len(seen))
    rest = (await near.get(said["events_url"], params={"after": 3})).json()
    assert rest["events"] == page["events"][3:]
    async with near.stream("GET", said["events_url"], headers={**STREAM, "last-event-id": "4"}) as answer:
        again = [one["id"] async for one in told(answer.aiter_lines())]
    assert again == [str(number) for number in numbers[4:]]
    async with near.stream("GET", said["events_url"], headers={**STREAM, "last-event-id": "999"}) as answer:
        assert [one async for one in told(answer.aiter_lines())] == []


async def test_the_stream_of_a_job_without_retained_events_ends(
    near: httpx.AsyncClient, app: Duly, go: asyncio.Event, sql: psycopg.Connection[Any]
) -> None:
    go.set()
    said = (await near.post("/v1/jobs", json={"job_type": "report.build"})).json()
    async with working(app):
        while (await near.get(said["status_url"], headers={"prefer": "wait=30"})).json()[
            "completed_at"
        ] is None:
            pass
    sql.execute("delete from duly.event_log")  # as retention does, long before the job goes
    async with near.stream("GET", said["events_url"], headers=STREAM) as answer:
        assert [one async for one in told(answer.aiter_lines())] == []


async def test_a_stream_ends_when_its_key_is_revoked(
    near: httpx.AsyncClient, app: Duly, org: uuid.UUID, key: str, go: asyncio.Event
) -> None:
    said = (await near.post("/v1/jobs", json={"job_type": "report.build"})).json()
    async with near.stream("GET", said["events_url"], headers=STREAM) as answer:
        stream = told(answer.aiter_lines())
        assert (await anext(stream))["event"] == "job.queued"
        await app.api_keys.revoke(org, key.split("_")[2], actor=ANNA, reason="lost")
        assert [one async for one in stream if "comment" not in one] == []


async def test_the_open_streams_of_an_org_are_limited(near: httpx.AsyncClient, go: asyncio.Event) -> None:
    said = (await near.post("/v1/jobs", json={"job_type": "report.build"})).json()
    url = said["events_url"]
    async with near.stream("GET", url, headers=STREAM), near.stream("GET", url, headers=STREAM) as second:
        lines = second.aiter_lines()  # kept: an iterator that is dropped hangs up
        await anext(lines)
        third = await near.get(url, headers=STREAM)
        assert (third.status_code, third.json()["code"]) == (429, "limit.exceeded")
    # Whoever hangs up makes room.
    while (answer := await _first_line(near, url)).status_code == 429:
        pass
    assert answer.status_code == 200


async def _first_line(near: httpx.AsyncClient, url: str) -> httpx.Response:
    async with near.stream("GET", url, headers=STREAM) as answer:
        return answer


@pytest.mark.parametrize("given", ["x", "-1", "1" * 12, "٣"])
async def test_an_invalid_cursor_is_refused(near: httpx.AsyncClient, go: asyncio.Event, given: str) -> None:
    said = (await near.post("/v1/jobs", json={"job_type": "report.build"})).json()
    answer = await near.get(said["events_url"], headers={"last-event-id": given.encode()})  # type: ignore[dict-item]
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "Last-Event-ID")
    assert (await near.get(f"/v1/jobs/{uuid.uuid4()}/events", headers=STREAM)).status_code == 404
