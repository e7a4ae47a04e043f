"""The feed over HTTP: pages, long polling, and a stream that ends when the key is revoked."""

from __future__ import annotations

import asyncio
import json
import uuid
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from duly import Duly
from duly.features.api_keys.service import ApiKeys
from duly.http.options import HttpOptions
from tests.db.open_transactions import wait_for_transactions
from tests.features.events.test_feed import old_events
from tests.http.conftest import ANNA, key_of, served
from tests.http.requests import INVALID_TEXTS
from tests.maintenance.aging import drop

STREAM = {"accept": "text/event-stream"}


@pytest.fixture
def options() -> HttpOptions:
    return HttpOptions(
        stream_heartbeat=timedelta(milliseconds=100), authentication_ttl=timedelta(0), streams_max=1
    )


@pytest.fixture
def send(app: Duly, acting: uuid.UUID) -> Any:
    @app.job("mail.send")
    def send(to: int) -> None: ...

    return send


async def test_pages_of_the_feed_are_contiguous(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient, send: Any, sql: psycopg.Connection
) -> None:
    jobs = [str((await send.enqueue(n)).job_id) for n in range(3)]
    wait_for_transactions(sql)
    page = (await http.get("/v1/feed", params={"limit": 2})).json()
    rest = (await http.get("/v1/feed", params={"after": page["after"]})).json()
    events = page["events"] + rest["events"]
    assert [event["job_id"] for event in events] == jobs
    assert {(event["event_type"], event["job_type"]) for event in events} == {("job.queued", "mail.send")}
    assert (page["more"], rest["more"]) == (True, False)
    after_first = (await http.get("/v1/feed", params={"after": events[0]["cursor"]})).json()
    assert [event["job_id"] for event in after_first["events"]] == jobs[1:]
    assert (await stranger.get("/v1/feed")).json()["events"] == []
    theirs = (await stranger.get("/v1/feed", params={"after": events[0]["cursor"]})).json()
    assert theirs["events"] == []


async def test_long_polling_waits_for_an_event(http: httpx.AsyncClient, send: Any) -> None:
    start = (await http.get("/v1/feed")).json()["after"]
    empty = await http.get("/v1/feed", params={"after": start}, headers={"prefer": "wait=1"})
    assert (empty.json()["events"], empty.headers["preference-applied"]) == ([], "wait=1")
    request = {"params": {"after": empty.json()["after"]}, "headers": {"prefer": "wait=30"}}
    waiting = asyncio.create_task(http.get("/v1/feed", **request))  # type: ignore[arg-type]
    handle = await send.enqueue(1)
    [event] = (await waiting).json()["events"]
    assert event["job_id"] == str(handle.job_id)


async def test_an_expired_cursor_is_gone_and_an_invalid_one_is_refused(
    http: httpx.AsyncClient, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    old_events(sql, org, "2024-01-17T00:00:00Z", 3)
    page = (await http.get("/v1/feed", params={"limit": 1})).json()
    assert len(page["events"]) == 1
    drop(sql, "event_log", "30 days", "2025-01-01T00:00:00Z")
    for headers in ({}, STREAM):
        gone = await http.get("/v1/feed", params={"after": page["after"]}, headers=headers)
        assert (gone.status_code, gone.json()["code"]) == (410, "cursor.expired")
    ahead = f"0 {2**62} {uuid.UUID(int=1)} 1"
    huge = f"0 {10**30} {uuid.UUID(int=1)} 1"
    for text in (
        *INVALID_TEXTS,
        "%%%",
        *(urlsafe_b64encode(x.encode()).decode() for x in (ahead, huge, "a b")),
    ):
        assert (await http.get("/v1/feed", params={"after": text})).status_code == 422, text


async def read_events(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
    """Yield the events of a stream, and the ids that only advance the cursor."""
    part: dict[str, Any] = {}
    async for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            part[name] = value
        elif part:
            yield part
            part = {}


async def next_event(events: AsyncIterator[dict[str, Any]]) -> dict[str, Any]:
    """Return the next event; an open transaction may hold it back while the cursor advances."""
    while "data" not in (event := await anext(events)):
        assert set(event) == {"id"}
    return event


async def test_a_feed_stream_resumes_and_ends_when_its_key_is_revoked(
    app: Duly, api: FastAPI, org: uuid.UUID, send: Any
) -> None:
    key = await key_of(app, org, "jobs:read")
    first = await send.enqueue(1)
    headers = {**STREAM, "authorization": f"Bearer {key}"}
    async with (
        served(api) as address,
        httpx.AsyncClient(base_url=address, headers=headers, timeout=30) as client,
    ):
        async with client.stream("GET", "/v1/feed") as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            events = read_events(response.aiter_lines())
            assert await anext(events) == {"retry": "1000"}
            event = await next_event(events)
            assert (event["event"], json.loads(event["data"])["job_id"]) == ("job.queued", str(first.job_id))
            assert event["id"] == json.loads(event["data"])["cursor"]
            assert set(await anext(events)) == {"id"}  # no event, and the cursor advances
            full = await client.get("/v1/feed")
            assert (full.status_code, full.json()["code"]) == (429, "limit.exceeded")
        second = await send.enqueue(2)
        while (wrong := await client.get("/v1/feed", headers={"last-event-id": "x"})).status_code == 429:
            pass  # until the service notices that the client left
        assert wrong.status_code == 422
        async with client.stream("GET", "/v1/feed", headers={"last-event-id": event["id"]}) as response:
            events = read_events(response.aiter_lines())
            await anext(events)
            event = await next_event(events)
            assert json.loads(event["data"])["job_id"] == str(second.job_id)
            await ApiKeys(app).revoke(org, key.split("_")[2], actor=ANNA, reason="lost")
            async for rest in events:
                assert set(rest) == {"id"}
