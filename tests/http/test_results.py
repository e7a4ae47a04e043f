"""Results have a permalink: partial snapshots while the job runs, the final one when it has ended."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from duly import Context, Duly
from tests.http.conftest import wait_until_ended
from tests.http.requests import check_looks_unknown
from tests.worker.working import ONE_ATTEMPT, working

LARGE = "x" * 60_000


@pytest.fixture
def go(app: Duly) -> dict[str, asyncio.Event]:
    """Declare a job type that pauses after each of two partial results until the test sets an event."""
    events = {name: asyncio.Event() for name in ("begun", "begin", "first", "second", "second stored", "end")}

    async def pause(reached: str, awaited: str) -> None:
        events[reached].set()
        await events[awaited].wait()

    @app.job("report.build", allows_partial=True, retry=ONE_ATTEMPT)
    async def build(ctx: Context, fail: bool = False) -> dict[str, int]:
        await pause("begun", "begin")
        await ctx.partial({"region": "DE"}, key="DE", percent=40)
        await pause("first", "second")
        await ctx.partial({"region": "FR", "text": LARGE}, key="FR", percent=80)
        await pause("second stored", "end")
        if fail:
            raise ValueError("no such region")
        return {"regions": 2}

    return events


async def submit(http: httpx.AsyncClient, **payload: object) -> str:
    response = await http.post("/v1/jobs", json={"job_type": "report.build", "payload": payload})
    return str(response.json()["status_url"])


async def run_job(http: httpx.AsyncClient, app: Duly, go: dict[str, asyncio.Event], **payload: object) -> str:
    """Run a job to its end; return the permalink of its result."""
    for event in go.values():
        event.set()
    url = await submit(http, **payload)
    async with working(app):
        return str((await wait_until_ended(http, url))["result_url"])


async def test_a_permalink_returns_the_latest_snapshot(
    http: httpx.AsyncClient, app: Duly, go: dict[str, asyncio.Event], sql: psycopg.Connection
) -> None:
    url = await submit(http)
    none = await http.get(f"{url}/result")
    assert (none.status_code, none.json()["code"]) == (404, "result.unknown")
    async with working(app):
        await go["begun"].wait()
        row = sql.execute("select result_id from duly.job_records").fetchone()
        assert row
        link = f"/v1/results/{row[0]}"
        empty = (await http.get(link)).json()
        assert (empty["status"], empty["snapshot"], empty["latest_seq"]) == ("running", None, 0)
        assert (empty["expires_at"], (await http.get(f"{link}?seq=1")).status_code) == (None, 404)
        go["begin"].set()
        await go["first"].wait()
        first = (await http.get(link)).json()
        assert (first["status"], first["outcome"], first["latest_seq"]) == ("partial", "pending", 1)
        assert first["snapshot"].items() >= {
            "seq": 1, "kind": "partial", "chunk_key": "DE", "value": {"region": "DE"}, "large": False,
        }.items()  # fmt: skip
        go["second"].set()
        await go["second stored"].wait()
        assert (await http.get(link)).json()["snapshot"]["value"] == {"region": "FR", "text": LARGE}
        assert (await http.get(f"{link}?seq=1")).json()["snapshot"] == first["snapshot"]
        go["end"].set()
        assert (await wait_until_ended(http, url))["result_url"] == link
    last = (await http.get(link)).json()
    assert (last["status"], last["outcome"], last["latest_seq"]) == ("completed", "succeeded", 3)
    assert (last["snapshot"]["kind"], last["snapshot"]["value"]) == ("final", {"regions": 2})
    assert last["expires_at"] > last["snapshot"]["created_at"]
    assert (last["status_url"], (await http.get(f"{url}/result")).headers["location"]) == (url, link)


async def test_snapshots_are_paginated_in_order(
    http: httpx.AsyncClient, app: Duly, go: dict[str, asyncio.Event]
) -> None:
    link = await run_job(http, app, go)
    whole = (await http.get(f"{link}/snapshots")).json()
    assert [(one["seq"], one["kind"]) for one in whole["snapshots"]] == [
        (1, "partial"), (2, "partial"), (3, "final"),
    ]  # fmt: skip
    assert whole["after"] == 3
    snapshots: list[dict[str, Any]] = []
    after = 0
    while page := (await http.get(f"{link}/snapshots", params={"after": after, "limit": 1})).json():
        if not page["snapshots"]:
            break
        snapshots, after = snapshots + page["snapshots"], page["after"]
    assert (snapshots, page["after"]) == (whole["snapshots"], 3)
    for one in snapshots:
        single = (await http.get(link, params={"seq": one["seq"]})).json()["snapshot"]
        assert one["large"] or single["value"] == one["value"]
    beyond = (await http.get(f"{link}/snapshots", params={"after": 2**31 - 1})).json()
    assert beyond == {"snapshots": [], "after": 2**31 - 1}
    for invalid in ({"seq": 0}, {"seq": 2**31}, {"seq": "x"}):
        assert (await http.get(link, params=invalid)).status_code == 422
    for invalid in ({"after": -1}, {"limit": 0}, {"limit": 501}):
        assert (await http.get(f"{link}/snapshots", params=invalid)).status_code == 422


async def test_partial_results_of_a_failed_job_remain_readable(
    http: httpx.AsyncClient, app: Duly, go: dict[str, asyncio.Event]
) -> None:
    link = await run_job(http, app, go, fail=True)
    result = (await http.get(link)).json()
    assert (result["status"], result["outcome"], result["latest_seq"]) == ("failed", "dead", 2)
    assert result["snapshot"]["value"]["region"] == "FR"


async def test_unknown_foreign_and_expired_results_look_the_same(
    http: httpx.AsyncClient,
    stranger: httpx.AsyncClient,
    app: Duly,
    go: dict[str, asyncio.Event],
    sql: psycopg.Connection,
) -> None:
    link = await run_job(http, app, go)
    result_id = uuid.UUID(link.rpartition("/")[2])
    for path in ("", "?seq=1", "/snapshots", "/snapshots?after=1"):
        await check_looks_unknown(stranger, "GET", f"/v1/results/{{}}{path}", result_id)
    sql.execute("delete from duly.result_snapshots")
    await check_looks_unknown(http, "GET", "/v1/results/{}", result_id)
    await check_looks_unknown(http, "GET", "/v1/results/{}?seq=3", result_id)


async def test_a_result_whose_blob_is_deleted_is_not_found(
    http: httpx.AsyncClient, app: Duly, go: dict[str, asyncio.Event], tmp_path: Path
) -> None:
    link = await run_job(http, app, go)
    blobs = [blob for blob in (tmp_path / "blobs").rglob("*") if blob.is_file()]
    assert blobs, "the second snapshot is too large for a row"
    for blob in blobs:
        blob.unlink()
    await check_looks_unknown(http, "GET", "/v1/results/{}?seq=2", uuid.UUID(link.rpartition("/")[2]))
