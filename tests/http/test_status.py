"""One job as it is now: its shape, its tag, waiting for a change; and its end by request."""

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
from tests.http.conftest import caller, key_of
from tests.worker.working import ONE_ATTEMPT, working

EVERYTHING = {
    "job_id", "job_type", "subject_id", "project_id", "correlation_id", "request_id", "queue", "priority",
    "status", "outcome", "attempt", "max_attempts", "progress_percent", "partial_count", "error_count",
    "created_at", "run_at", "started_at", "updated_at", "completed_at", "cancel_requested_at",
    "canceled_by", "cancel_reason", "retryable", "error_code", "error_class", "error_message",
    "summary_counts", "replay_of", "result_id", "result_url", "status_url", "events_url", "freshness",
    "reconciled", "reconciliations", "event_seq", "result_seq",
}  # fmt: skip


@pytest.fixture
def gate(app: Duly) -> dict[str, asyncio.Event]:
    """A job type whose handler says where it is, and goes on when it is told."""
    events = {name: asyncio.Event() for name in ("first", "go", "end")}

    @app.job("report.build", allows_partial=True, retry=ONE_ATTEMPT)
    async def build(ctx: Context, fail: bool = False, number: int = 0) -> dict[str, int]:
        await ctx.partial({"region": "DE"}, key="DE", percent=40)
        events["first"].set()
        await events["go"].wait()
        if number == 1:
            await canceled(ctx)
        if fail:
            raise ValueError("no such region")
        await ctx.partial({"region": "FR"}, key="FR", percent=80)
        await events["end"].wait()
        return {"regions": 2}

    return events


async def canceled(ctx: Context) -> None:
    """Go on until the worker has heard that nobody wants it any more."""
    while True:
        ctx.check_canceled()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.01)


async def submit(http: httpx.AsyncClient, **payload: object) -> str:
    answer = await http.post("/v1/jobs", json={"job_type": "report.build", "payload": payload})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["status_url"])


async def test_a_status_has_all_fields_and_can_be_polled(
    http: httpx.AsyncClient, app: Duly, gate: dict[str, asyncio.Event]
) -> None:
    place = await submit(http)
    queued = await http.get(place)
    said = queued.json()
    assert set(said) == EVERYTHING
    assert (said["status"], said["progress_percent"], said["result_url"]) == ("queued", 0, None)
    assert (said["event_seq"], said["result_seq"], said["freshness"]["shown"]) == (1, 0, "fresh_active")
    assert queued.headers["retry-after"] == "1"
    same = await http.get(place, headers={"if-none-match": queued.headers["etag"]})
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", queued.headers["etag"])
    waiting = asyncio.create_task(
        http.get(place, headers={"prefer": "wait=30", "if-none-match": queued.headers["etag"]})
    )
    async with working(app):
        news = await waiting
        assert news.headers["preference-applied"] == "wait=30"
        assert (news.status_code, news.json()["event_seq"]) > (200, 1)
        await gate["first"].wait()
        partial = (await http.get(place)).json()
        assert (partial["status"], partial["progress_percent"], partial["partial_count"]) == (
            "partial",
            40,
            1,
        )
        assert partial["result_url"] == f"/v1/results/{partial['result_id']}"
        assert (await http.get(f"{place}/result")).headers["location"] == partial["result_url"]
        gate["go"].set()
        gate["end"].set()
        while (ended := (await http.get(place, headers={"prefer": "wait=30"})).json())[
            "status"
        ] != "completed":
            pass
    assert (ended["outcome"], ended["progress_percent"], ended["freshness"]["state"]) == (
        "succeeded",
        100,
        "terminal",
    )
    assert ended["completed_at"] is not None
    last = await http.get(place, headers={"prefer": "wait=30"})
    assert "retry-after" not in last.headers


async def test_waiting_ends_when_the_time_is_over(
    http: httpx.AsyncClient, gate: dict[str, asyncio.Event]
) -> None:
    place = await submit(http)
    answer = await http.get(place, headers={"prefer": "wait=1"})
    assert (answer.status_code, answer.json()["status"]) == (200, "queued")
    known = await http.get(
        place, headers={"prefer": "respond-async, wait=1", "if-none-match": answer.headers["etag"]}
    )
    assert known.status_code == 304


async def test_canceling_ends_a_queued_job_and_notifies_the_worker_of_a_running_one(
    http: httpx.AsyncClient, app: Duly, gate: dict[str, asyncio.Event]
) -> None:
    waiting = await submit(http)
    for _ in range(2):
        answer = await http.post(f"{waiting}/cancel", json={"reason": "enough"})
        assert (answer.status_code, answer.json()["status"]) == (200, "canceled")
    assert (answer.json()["canceled_by"], answer.json()["cancel_reason"]) == ("user", "enough")
    async with working(app):
        held = await submit(http, number=1)
        await gate["first"].wait()
        for _ in range(2):
            answer = await http.post(f"{held}/cancel", json={"reason": "enough"})
            assert (answer.status_code, answer.json()["cancel_requested_at"] is not None) == (202, True)
        gate["go"].set()
        while (ended := (await http.get(held, headers={"prefer": "wait=30"})).json())["completed_at"] is None:
            pass
        assert (ended["status"], ended["partial_count"], ended["result_id"] is not None) == (
            "canceled",
            1,
            True,
        )
        gate["end"].set()
        done = await submit(http, number=2)
        while (await http.get(done, headers={"prefer": "wait=30"})).json()["completed_at"] is None:
            pass
        late = await http.post(f"{done}/cancel", json={"reason": "enough"})
        assert (late.status_code, late.json()["code"]) == (409, "job.finished")


async def test_a_failure_is_told(http: httpx.AsyncClient, app: Duly, gate: dict[str, asyncio.Event]) -> None:
    gate["go"].set()
    async with working(app):
        place = await submit(http, fail=True)
        while (said := (await http.get(place, headers={"prefer": "wait=30"})).json())["completed_at"] is None:
            pass
    assert (said["status"], said["error_class"], said["error_message"]) == (
        "failed",
        "ValueError",
        "no such region",
    )


async def test_lists_are_filtered_and_paged(http: httpx.AsyncClient, gate: dict[str, asyncio.Event]) -> None:
    for number in range(3):
        body = {
            "job_type": "report.build",
            "subject_id": f"s{number}",
            "metadata": {"batch": str(number % 2)},
        }
        await http.post("/v1/jobs", json=body)
    place = (await http.get("/v1/jobs", params={"subject_id": "s1"})).json()["jobs"][0]["status_url"]
    await http.post(f"{place}/cancel", json={"reason": "enough"})

    async def subjects(**wanted: object) -> list[str]:
        found: list[str] = []
        after = None
        while True:
            params = {**wanted, "limit": 1, **({} if after is None else {"after": after})}
            page = (await http.get("/v1/jobs", params=params)).json()  # type: ignore[arg-type]
            found += [job["subject_id"] for job in page["jobs"]]
            if (after := page["after"]) is None:
                return found

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
    for wrong, field in (
        ({"after": "nonsense"}, "after"),
        ({"limit": 501}, "limit"),
        ({"status": "lost"}, "status"),
        ({"metadata": "batch"}, "metadata"),
        ({"created_after": "2020-01-01T00:00:00"}, "created_after"),
        ({"job_type": "a\0b"}, "job_type"),
        ({"subject": "s1"}, "subject"),
    ):
        answer = await http.get("/v1/jobs", params=wrong)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field), answer.text


async def test_unknown_and_foreign_look_the_same(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient, gate: dict[str, asyncio.Event]
) -> None:
    place = await submit(http)
    unknown = f"/v1/jobs/{uuid.uuid4()}"
    for path in ("", "/events", "/result", "/artifacts", "/artifacts/x"):
        foreign = await stranger.get(f"{place}{path}", headers={"x-request-id": "r"})
        nobody = await stranger.get(f"{unknown}{path}", headers={"x-request-id": "r"})
        assert foreign.status_code == 404
        ids = place.rpartition("/")[2], unknown.rpartition("/")[2]
        assert foreign.text.replace(ids[0], "") == nobody.text.replace(ids[1], "")
    assert (await stranger.get("/v1/jobs")).json()["jobs"] == []
    assert (await stranger.post(f"{place}/cancel", json={"reason": "r"})).status_code == 404
    assert (await http.get(place)).json()["status"] == "queued"


async def test_a_database_that_is_gone_is_said_so(
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
        answer = await http.get("/v1/jobs")
        assert (answer.status_code, answer.json()["code"]) == (503, "store.unavailable")
        assert answer.headers["retry-after"] == "1"
        assert (await http.get("/livez")).json()["status"] == "ok"
        sql.execute(f"alter database {name} with allow_connections true")
        while (await http.get("/readyz")).status_code == 503:
            pass
        sql.close()
    await app.close()
