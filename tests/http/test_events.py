"""Events of a job as pages and as streams: each once, in order, resumable after any of them."""

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
from tests.http.conftest import ANNA, served, wait_until_ended
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
def proceed(app: Duly) -> asyncio.Event:
    event = asyncio.Event()

    @app.job("report.build", allows_partial=True)
    async def build(ctx: Context) -> None:
        await event.wait()
        for number in range(5):
            await ctx.partial({"n": number}, percent=number * 20)

    return event


@pytest.fixture
async def client(api: FastAPI, key: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client over a real connection."""
    async with served(api) as address:
        headers = {"authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(base_url=address, headers=headers, timeout=30) as client:
            yield client


async def read_events(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
    """Yield the events of a stream, and its comments under the name `comment`."""
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
    client: httpx.AsyncClient, app: Duly, proceed: asyncio.Event
) -> None:
    accepted = (await client.post("/v1/jobs", json={"job_type": "report.build"})).json()
    events: list[dict[str, Any]] = []
    async with working(app), client.stream("GET", accepted["events_url"], headers=STREAM) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        async for one in read_events(response.aiter_lines()):
            if "comment" in one:
                proceed.set()  # a heartbeat arrives although nothing happens
            else:
                events.append(one)
    assert proceed.is_set()
    numbers = [int(one["id"]) for one in events]
    assert numbers == list(range(1, len(events) + 1))
    kinds = [one["event"] for one in events]
    assert (kinds[0], kinds[-1], kinds.count("job.partial")) == ("job.queued", "job.completed", 5)
    assert all(one["data"]["event_seq"] == int(one["id"]) for one in events)
    page = (await client.get(accepted["events_url"])).json()
    assert ([one["data"] for one in events], page["after"]) == (page["events"], len(events))
    rest = (await client.get(accepted["events_url"], params={"after": 3})).json()
    assert rest["events"] == page["events"][3:]
    async with client.stream(
        "GET", accepted["events_url"], headers={**STREAM, "last-event-id": "4"}
    ) as response:
        again = [one["id"] async for one in read_events(response.aiter_lines())]
    assert again == [str(number) for number in numbers[4:]]
    async with client.stream(
        "GET", accepted["events_url"], headers={**STREAM, "last-event-id": "999"}
    ) as response:
        assert [one async for one in read_events(response.aiter_lines())] == []


async def test_the_stream_of_a_job_without_retained_events_ends_after_the_first(
    client: httpx.AsyncClient, app: Duly, proceed: asyncio.Event, sql: psycopg.Connection[Any]
) -> None:
    proceed.set()
    accepted = (await client.post("/v1/jobs", json={"job_type": "report.build"})).json()
    async with working(app):
        await wait_until_ended(client, accepted["status_url"])
    sql.execute("delete from duly.event_log")  # as retention does, long before it deletes the job
    async with client.stream("GET", accepted["events_url"], headers=STREAM) as response:
        events = [one async for one in read_events(response.aiter_lines())]
    assert [event["event"] for event in events] == ["job.queued"]  # the record itself is that event


async def test_a_stream_ends_when_its_key_is_revoked(
    client: httpx.AsyncClient, app: Duly, org: uuid.UUID, key: str, proceed: asyncio.Event
) -> None:
    accepted = (await client.post("/v1/jobs", json={"job_type": "report.build"})).json()
    async with client.stream("GET", accepted["events_url"], headers=STREAM) as response:
        stream = read_events(response.aiter_lines())
        assert (await anext(stream))["event"] == "job.queued"
        await app.api_keys.revoke(org, key.split("_")[2], actor=ANNA, reason="lost")
        assert [one async for one in stream if "comment" not in one] == []


async def test_the_open_streams_of_an_org_are_limited(
    client: httpx.AsyncClient, proceed: asyncio.Event
) -> None:
    accepted = (await client.post("/v1/jobs", json={"job_type": "report.build"})).json()
    url = accepted["events_url"]
    async with client.stream("GET", url, headers=STREAM), client.stream("GET", url, headers=STREAM) as second:
        lines = second.aiter_lines()  # keep a reference: a garbage-collected iterator closes the connection
        await anext(lines)
        third = await client.get(url, headers=STREAM)
        assert (third.status_code, third.json()["code"]) == (429, "limit.exceeded")
    # A closed stream makes room for another.
    while (response := await _first_line(client, url)).status_code == 429:
        pass
    assert response.status_code == 200


async def _first_line(client: httpx.AsyncClient, url: str) -> httpx.Response:
    async with client.stream("GET", url, headers=STREAM) as response:
        return response


@pytest.mark.parametrize("cursor", ["x", "-1", "1" * 12, "٣"])
async def test_an_invalid_cursor_is_refused(
    client: httpx.AsyncClient, proceed: asyncio.Event, cursor: str
) -> None:
    accepted = (await client.post("/v1/jobs", json={"job_type": "report.build"})).json()
    response = await client.get(accepted["events_url"], headers={"last-event-id": cursor.encode()})  # type: ignore[dict-item]
    assert (response.status_code, response.json()["errors"][0]["field"]) == (422, "Last-Event-ID")
    assert (await client.get(f"/v1/jobs/{uuid.uuid4()}/events", headers=STREAM)).status_code == 404
