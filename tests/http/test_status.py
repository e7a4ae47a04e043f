"""The status of a job: its fields, its ETag, long polling, canceling and listing."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from duly import Context, Duly
from duly.http.application import create_app
from duly.testing import DatabaseCluster, FreshDatabase
from tests.http.conftest import caller, key_of, wait_until_ended
from tests.worker.working import ONE_ATTEMPT, working

FIELDS = {
    "job_id", "job_type", "subject_id", "project_id", "correlation_id", "request_id", "queue", "priority",
    "status", "outcome", "attempt", "max_attempts", "progress_percent", "partial_count", "error_count",
    "created_at", "run_at", "started_at", "updated_at", "completed_at", "cancel_requested_at",
    "canceled_by", "cancel_reason", "retryable", "error_code", "error_class", "error_message",
    "summary_counts", "replay_of", "result_id", "result_url", "status_url", "events_url", "freshness",
    "reconciled", "reconciliations", "event_seq", "result_seq",
}  # fmt: skip


@pytest.fixture
def gate(app: Duly) -> dict[str, asyncio.Event]:
    """Declare a job type whose handler sets and awaits these events."""
    events = {name: asyncio.Event() for name in ("first", "go", "end")}

    @app.job("report.build", allows_partial=True, retry=ONE_ATTEMPT)
    async def build(ctx: Context, fail: bool = False, number: int = 0) -> dict[str, int]:
        await ctx.partial({"region": "DE"}, key="DE", percent=40)
        events["first"].set()
        await events["go"].wait()
        if number == 1:
            await wait_for_cancel(ctx)
        if fail:
            raise ValueError("no such region")
        await ctx.partial({"region": "FR"}, key="FR", percent=80)
        await events["end"].wait()
        return {"regions": 2}

    return events


async def wait_for_cancel(ctx: Context) -> None:
    """Wait until the worker notices the cancel request."""
    while True:
        ctx.check_canceled()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.01)


async def submit(http: httpx.AsyncClient, **payload: object) -> str:
    response = await http.post("/v1/jobs", json={"job_type": "report.build", "payload": payload})
    assert response.status_code == 202, response.text
    return str(response.json()["status_url"])


async def test_a_status_has_all_fields_and_can_be_polled(
    http: httpx.AsyncClient, app: Duly, gate: dict[str, asyncio.Event]
) -> None:
    url = await submit(http)
    queued = await http.get(url)
    job = queued.json()
    assert set(job) == FIELDS
    assert (job["status"], job["progress_percent"], job["result_url"]) == ("queued", 0, None)
    assert (job["event_seq"], job["result_seq"], job["freshness"]["shown"]) == (1, 0, "fresh_active")
    assert queued.headers["retry-after"] == "1"
    same = await http.get(url, headers={"if-none-match": queued.headers["etag"]})
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", queued.headers["etag"])
    waiting = asyncio.create_task(
        http.get(url, headers={"prefer": "wait=30", "if-none-match": queued.headers["etag"]})
    )
    async with working(app):
        changed = await waiting
        assert changed.headers["preference-applied"] == "wait=30"
        assert (changed.status_code, changed.json()["event_seq"]) > (200, 1)
        await gate["first"].wait()
        partial = (await http.get(url)).json()
        assert (partial["status"], partial["progress_percent"], partial["partial_count"]) == (
            "partial",
            40,
            1,
        )
        assert partial["result_url"] == f"/v1/results/{partial['result_id']}"
        assert (await http.get(f"{url}/result")).headers["location"] == partial["result_url"]
        gate["go"].set()
        gate["end"].set()
        while (ended := (await http.get(url, headers={"prefer": "wait=30"})).json())["status"] != "completed":
            pass
    assert (ended["outcome"], ended["progress_percent"], ended["freshness"]["state"]) == (
        "succeeded",
        100,
        "terminal",
    )
    assert ended["completed_at"] is not None
    last = await http.get(url, headers={"prefer": "wait=30"})
    assert "retry-after" not in last.headers


async def test_long_polling_ends_after_the_requested_time(
    http: httpx.AsyncClient, gate: dict[str, asyncio.Event]
) -> None:
    url = await submit(http)
    response = await http.get(url, headers={"prefer": "wait=1"})
    assert (response.status_code, response.json()["status"]) == (200, "queued")
    known = await http.get(
        url, headers={"prefer": "respond-async, wait=1", "if-none-match": response.headers["etag"]}
    )
    assert known.status_code == 304


async def test_canceling_ends_a_queued_job_and_notifies_the_worker_of_a_running_one(
    http: httpx.AsyncClient, app: Duly, gate: dict[str, asyncio.Event]
) -> None:
    waiting = await submit(http)
    for _ in range(2):
        response = await http.post(f"{waiting}/cancel", json={"reason": "enough"})
        assert (response.status_code, response.json()["status"]) == (200, "canceled")
    assert (response.json()["canceled_by"], response.json()["cancel_reason"]) == ("user", "enough")
    async with working(app):
        running = await submit(http, number=1)
        await gate["first"].wait()
        for _ in range(2):
            response = await http.post(f"{running}/cancel", json={"reason": "enough"})
            assert (response.status_code, response.json()["cancel_requested_at"] is not None) == (202, True)
        gate["go"].set()
        ended = await wait_until_ended(http, running)
        assert (ended["status"], ended["partial_count"], ended["result_id"] is not None) == (
            "canceled",
            1,
            True,
        )
        gate["end"].set()
        done = await submit(http, number=2)
        await wait_until_ended(http, done)
        late = await http.post(f"{done}/cancel", json={"reason": "enough"})
        assert (late.status_code, late.json()["code"]) == (409, "job.finished")


async def test_a_failed_job_has_its_error(
    http: httpx.AsyncClient, app: Duly, gate: dict[str, asyncio.Event]
) -> None:
    gate["go"].set()
    async with working(app):
        url = await submit(http, fail=True)
        job = await wait_until_ended(http, url)
    assert (job["status"], job["error_class"], job["error_message"]) == (
        "failed",
        "ValueError",
        "no such region",
    )


async def test_lists_are_filtered_and_paginated(
    http: httpx.AsyncClient, gate: dict[str, asyncio.Event]
) -> None:
    for number in range(3):
        body = {
            "job_type": "report.build",
            "subject_id": f"s{number}",
            "metadata": {"batch": str(number % 2)},
        }
        await http.post("/v1/jobs", json=body)
    url = (await http.get("/v1/jobs", params={"subject_id": "s1"})).json()["jobs"][0]["status_url"]
    await http.post(f"{url}/cancel", json={"reason": "enough"})

    async def subjects(**filters: object) -> list[str]:
        subject_ids: list[str] = []
        after = None
        while True:
            params = {**filters, "limit": 1, **({} if after is None else {"after": after})}
            page = (await http.get("/v1/jobs", params=params)).json()  # type: ignore[arg-type]
            subject_ids += [job["subject_id"] for job in page["jobs"]]
            if (after := page["after"]) is None:
                return subject_ids

    assert await subjects() == ["s2", "s1", "s0"]
    assert await subjects(status="queued") == ["s2", "s0"]
    assert await subjects(outcome="canceled") == ["s1"]
    assert await subjects(metadata="batch:0") == ["s2", "s0"]
    assert await subjects(queue="q:default", job_type="report.build", freshness="fresh") == [
        "s2",
        "s0",
    ]
    assert await subjects(created_before="2020-01-01T00:00:00Z") == []
    assert await subjects(created_after="2020-01-01T00:00:00Z") == ["s2", "s1", "s0"]
    for invalid, field in (
        ({"after": "nonsense"}, "after"),
        ({"limit": 501}, "limit"),
        ({"status": "lost"}, "status"),
        ({"metadata": "batch"}, "metadata"),
        ({"created_after": "2020-01-01T00:00:00"}, "created_after"),
        ({"job_type": "a\0b"}, "job_type"),
        ({"subject": "s1"}, "subject"),
    ):
        response = await http.get("/v1/jobs", params=invalid)
        assert (response.status_code, response.json()["errors"][0]["field"]) == (422, field), response.text


async def test_unknown_and_foreign_jobs_look_the_same(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient, gate: dict[str, asyncio.Event]
) -> None:
    url = await submit(http)
    unknown = f"/v1/jobs/{uuid.uuid4()}"
    for path in ("", "/events", "/result", "/artifacts", "/artifacts/x"):
        foreign_response = await stranger.get(f"{url}{path}", headers={"x-request-id": "r"})
        unknown_response = await stranger.get(f"{unknown}{path}", headers={"x-request-id": "r"})
        assert foreign_response.status_code == 404
        ids = url.rpartition("/")[2], unknown.rpartition("/")[2]
        assert foreign_response.text.replace(ids[0], "") == unknown_response.text.replace(ids[1], "")
    assert (await stranger.get("/v1/jobs")).json()["jobs"] == []
    assert (await stranger.post(f"{url}/cancel", json={"reason": "r"})).status_code == 404
    assert (await http.get(url)).json()["status"] == "queued"


async def test_an_unreachable_database_is_reported_as_503(
    cluster: DatabaseCluster, fresh: FreshDatabase, tmp_path: Path, org: uuid.UUID
) -> None:
    app = Duly(database_url=fresh.direct_url, blobs_url=str(tmp_path), pool_timeout=0.2)
    async with caller(create_app(app), await key_of(app, org)) as http:
        assert (await http.get("/readyz")).json() == {"status": "ok", "reasons": []}
        assert (await http.get("/v1/jobs")).status_code == 200
        name = conninfo_to_dict(fresh.direct_url)["dbname"]
        sql = psycopg.connect(cluster.url("postgres"), autocommit=True)
        sql.execute(f"alter database {name} with allow_connections false")
        sql.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name])
        ready = await http.get("/readyz")
        assert (ready.status_code, ready.json()["reasons"]) == (503, ["store.unavailable"])
        response = await http.get("/v1/jobs")
        assert (response.status_code, response.json()["code"]) == (503, "store.unavailable")
        assert response.headers["retry-after"] == "1"
        assert (await http.get("/livez")).json()["status"] == "ok"
        sql.execute(f"alter database {name} with allow_connections true")
        while (await http.get("/readyz")).status_code == 503:
            pass
        sql.close()
    await app.close()
