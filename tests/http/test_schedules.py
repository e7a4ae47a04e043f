"""Schedules and job types over HTTP."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI

from duly import Duly
from duly.core.policy import Retention
from duly.maintenance import retention
from tests.http.conftest import caller, key_of
from tests.http.requests import INVALID_TEXTS, REASON, check_looks_unknown

NIGHTLY: dict[str, Any] = {"name": "a night ly", "cron": "0 3 * * *", "job_type": "house.clean", **REASON}
URL = "/v1/schedules/" + quote(NIGHTLY["name"], safe="")


@pytest.fixture(autouse=True)
def _declared(app: Duly) -> None:
    @app.job("house.clean", category="maintenance")
    async def clean(room: str = "hall") -> None: ...

    @app.job("report.build", queue="q:exports")
    async def build(region: str) -> None: ...

    retention.declare(app, Retention())


async def test_a_schedule_is_created_updated_run_and_deleted(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient, app: Duly, org: uuid.UUID
) -> None:
    created, again = [await http.post("/v1/schedules", json=NIGHTLY) for _ in range(2)]
    assert (created.status_code, again.status_code, created.headers["location"]) == (201, 200, URL)
    assert created.json() == again.json() == (await http.get(URL)).json()
    assert created.json()["payload"] == {"room": "hall"}
    changed = await http.patch(URL, json={**REASON, "cron": "0 4 * * *", "payload": {"room": "attic"}})
    assert (changed.json()["cron"], changed.json()["timezone"]) == ("0 4 * * *", "UTC")

    for verb in ("pause", "resume"):
        assert (await http.post(f"{URL}/{verb}", json=REASON)).status_code == 200
        paused = (await http.get(URL)).json()["paused_at"]
        assert (paused is not None) == (verb == "pause")
    run = await http.post(f"{URL}/run-now", json=REASON)
    assert (run.status_code, run.headers["location"]) == (202, run.json()["status_url"])
    job = await app.handle(run.json()["job_id"], org_id=org).status()
    assert (job.job_type, job.actor_type) == ("house.clean", "api_key")
    ticks = (await http.get(f"{URL}/ticks", params={"limit": 3})).json()
    assert (ticks["recorded"], len(ticks["upcoming"])) == ([], 3)
    await http.post("/v1/schedules", json={**NIGHTLY, "name": "weekly"})
    page = (await http.get("/v1/schedules", params={"limit": 1})).json()
    rest = (await http.get("/v1/schedules", params={"limit": 1, "after": page["after"]})).json()
    assert [one["name"] for one in page["schedules"] + rest["schedules"]] == ["a night ly", "weekly"]

    assert (await stranger.get("/v1/schedules")).json() == {"schedules": [], "after": None}
    await check_looks_unknown(stranger, "GET", "/v1/schedules/{}", "weekly")
    await check_looks_unknown(stranger, "GET", "/v1/schedules/{}/ticks", "weekly")
    await check_looks_unknown(stranger, "PATCH", "/v1/schedules/{}", "weekly", json=REASON)
    await check_looks_unknown(stranger, "DELETE", "/v1/schedules/{}", "weekly", params=REASON)
    for verb in ("pause", "resume", "run-now"):
        await check_looks_unknown(stranger, "POST", f"/v1/schedules/{{}}/{verb}", "weekly", json=REASON)
    gone = await http.delete(URL, params=REASON)
    assert (gone.status_code, gone.content) == (204, b"")
    assert (await http.get(URL)).json()["code"] == "schedule.unknown"
    trail = (await http.get("/v1/audit", params={"target_id": created.json()["schedule_id"]})).json()[
        "entries"
    ]
    assert [entry["action"].removeprefix("schedule.") for entry in trail] == [
        "deleted", "run_now", "resumed", "paused", "updated", "created"
    ]  # fmt: skip


async def test_invalid_requests_name_their_fields(
    http: httpx.AsyncClient, app: Duly, api: FastAPI, org: uuid.UUID
) -> None:
    for invalid, field in (
        ({"cron": "every day"}, "cron"),
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"timezone": "../etc/passwd"}, "timezone"),
        ({"job_type": "report.build"}, "job_type"),
        ({"job_type": "duly.partitions"}, "job_type"),
        ({"payload": {"rooms": 1}}, "payload.rooms"),
        ({"name": "a\0b"}, "name"),
        ({"name": "a/b"}, "name"),
        ({"project_id": str(uuid.uuid4())}, "project_id"),
        ({"reason": ""}, "reason"),
        ({"missed": "never"}, "missed"),
    ):
        response = await http.post("/v1/schedules", json={**NIGHTLY, **invalid})
        assert (response.status_code, response.json()["errors"][0]["field"]) == (422, field), response.text
    await http.post("/v1/schedules", json=NIGHTLY)
    for change in (
        {"job_type": "duly.partitions"},
        {"cron": "\0"},
        {"payload": {"room": "\0"}},
        {"name": "b"},
    ):
        assert (await http.patch(URL, json={**REASON, **change})).status_code == 422, change
    assert (await http.delete(URL)).status_code == 422
    for text in INVALID_TEXTS:
        assert (await http.get(f"/v1/schedules/{quote(text)}")).status_code == 422
        assert (await http.get("/v1/schedules", params={"after": text})).status_code == 422
    assert (await http.get(f"{URL}/ticks", params={"limit": 10**30})).status_code == 422
    async with caller(api, await key_of(app, org, "jobs:read", "jobs:write")) as other:
        assert (await other.get(URL)).status_code == 200
        assert (await other.post(f"{URL}/pause", json=REASON)).status_code == 403


async def test_the_job_types_of_the_application_are_listed(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    job_types = (await http.get("/v1/job-types")).json()
    assert [one["job_type"] for one in job_types["job_types"]] == ["house.clean", "report.build"]
    build = job_types["job_types"][1]
    assert (build["queue"], build["category"], build["schedulable"]) == ("q:exports", "default", False)
    assert build["payload_schema"]["required"] == ["region"]
    assert (await stranger.get("/v1/job-types")).json() == job_types
