"""Routes of the platform: they need a key with the platform scope."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from duly import Duly
from duly.core.job import SYSTEM_ORG
from duly.features.audit.service import Audit
from duly.http.options import HttpOptions
from tests.http.conftest import caller
from tests.http.requests import INVALID_TEXTS, REASON, platform_key
from tests.worker.working import working


@pytest.fixture
def options() -> HttpOptions:
    """Without a cache, so that a suspended org is refused at once."""
    return HttpOptions(authentication_ttl=timedelta(0))


@pytest.fixture
async def platform(app: Duly, api: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the platform scope."""
    async with caller(api, await platform_key(app)) as client:
        yield client


async def trail(app: Duly, org: uuid.UUID) -> list[tuple[str, str, str | None]]:
    entries = reversed((await Audit(app).list(org)).entries)
    return [(entry.action, entry.actor_type, entry.reason) for entry in entries]


async def test_an_org_is_created_gets_a_key_and_is_suspended(
    platform: httpx.AsyncClient, app: Duly, api: FastAPI, org: uuid.UUID
) -> None:
    created = await platform.post("/v1/platform/orgs", json={**REASON, "name": "New"})
    new, url = created.json()["org_id"], created.headers["location"]
    assert (created.status_code, (await platform.get(url)).json()) == (201, created.json())
    again = await platform.post("/v1/platform/orgs", json={**REASON, "name": "New", "org_id": new})
    assert again.json() == created.json()
    taken = await platform.post("/v1/platform/orgs", json={**REASON, "name": "Else", "org_id": new})
    assert (taken.status_code, taken.json()["code"]) == (409, "conflict")
    key = await platform.post(f"{url}/keys", json={**REASON, "name": "first"})
    assert (key.status_code, key.headers["cache-control"]) == (201, "no-store")
    assert key.json()["scopes"] == ["jobs:read", "jobs:write", "operate", "admin"]
    async with caller(api, key.json()["text"]) as admin:
        assert (await admin.get("/v1/org")).json()["name"] == "New"
        renamed = await platform.patch(url, json={**REASON, "name": "Newer"})
        assert renamed.json()["name"] == (await admin.get("/v1/org")).json()["name"] == "Newer"
        for status, status_code in (("suspended", 401), ("active", 200)):
            done = await platform.patch(url, json={**REASON, "status": status})
            assert (done.json()["status"], (await admin.get("/v1/org")).status_code) == (status, status_code)
    actions = ["org.created", "key.created", "org.renamed", "org.suspended", "org.resumed"]
    assert await trail(app, uuid.UUID(new)) == [(action, "api_key", REASON["reason"]) for action in actions]
    page = (await platform.get("/v1/platform/orgs", params={"limit": 2})).json()
    rest = (await platform.get("/v1/platform/orgs", params={"limit": 2, "after": page["after"]})).json()
    assert {one["org_id"] for one in page["orgs"] + rest["orgs"]} == {str(org), new, str(SYSTEM_ORG)}


async def test_queues_are_created_weighted_and_paused(platform: httpx.AsyncClient, app: Duly) -> None:
    created = await platform.post("/v1/platform/queues", json={**REASON, "queue": "q:slow", "weight": 2})
    assert (created.status_code, created.json()["weight"]) == (201, 2)
    for verb, more, changed in (
        ("pause", {}, {"pause_reason": REASON["reason"]}),
        ("resume", {}, {"pause_reason": None}),
        ("weight", {"weight": 5}, {"weight": 5}),
        ("alerts", {"alert_depth": 7, "alert_wait": 1.5}, {"alert_depth": 7, "alert_wait": 1.5}),
    ):
        done = await platform.post(f"/v1/platform/queues/q:slow/{verb}", json={**REASON, **more})
        assert (done.status_code, {**done.json(), **changed}) == (200, done.json())
        unknown = await platform.post(f"/v1/platform/queues/q:none/{verb}", json={**REASON, **more})
        assert (unknown.status_code, unknown.json()["code"]) == (404, "queue.unknown")
    listed = (await platform.get("/v1/platform/queues")).json()["queues"]
    [slow] = [one for one in listed if one["queue"] == "q:slow"]
    assert (slow["weight"], slow["waiting"]) == (5, {"count": 0, "at_least": False})
    actions = [action for action, _, _ in await trail(app, SYSTEM_ORG)]
    assert actions[-5:] == [
        *("queue.created", "queue.paused", "queue.resumed", "queue.weighed", "queue.alerts_set")
    ]


async def test_workers_and_statistics_are_listed(platform: httpx.AsyncClient, app: Duly) -> None:
    async with working(app):
        [worker] = (await platform.get("/v1/platform/workers")).json()["workers"]
        overview = (await platform.get("/v1/platform/overview")).json()
        drain = f"/v1/platform/workers/{worker['worker_id']}/drain"
        requested = (await platform.post(drain, json=REASON)).json()
        assert (requested["drain_reason"], requested["drain_requested_at"] is None) == (
            REASON["reason"],
            False,
        )
    gone = await platform.post(drain, json=REASON)
    assert (gone.status_code, gone.json()["code"]) == (404, "worker.unknown")
    assert (await trail(app, SYSTEM_ORG))[-1] == ("worker.drain_requested", "api_key", REASON["reason"])
    assert (worker["state"], worker["running"], type(worker["lease"])) == ("working", 0, float)
    assert (overview["workers"], overview["slots"], overview["orgs"]["count"]) == (1, worker["slots"], 0)
    assert "q:default" in {queue["queue"] for queue in overview["queues"]}


async def test_a_limit_is_replaced_as_a_whole(platform: httpx.AsyncClient, app: Duly, org: uuid.UUID) -> None:
    mine: dict[str, Any] = {**REASON, "org_id": str(org)}
    done = await platform.put("/v1/platform/limits", json={**mine, "max_running": 5, "max_waiting": 9})
    assert (done.status_code, done.json()["max_running"], done.json()["max_waiting"]) == (200, 5, 9)
    whole = await platform.put("/v1/platform/limits", json={**mine, "starts_per_second": 2.5})
    assert [whole.json()[n] for n in ("max_running", "max_waiting", "starts_per_second", "burst")] == [
        None, None, 2.5, 3
    ]  # fmt: skip
    paused = await platform.post("/v1/platform/limits/pause", json={**REASON, "job_type": "mail.send"})
    assert (paused.json()["org_id"], paused.json()["pause_reason"]) == (None, REASON["reason"])
    page = (await platform.get("/v1/platform/limits", params={"limit": 1})).json()
    rest = (await platform.get("/v1/platform/limits", params={"limit": 1, "after": page["after"]})).json()
    assert [(one["org_id"], one["job_type"]) for one in page["limits"] + rest["limits"]] == [
        (None, "mail.send"),
        (str(org), None),
    ]
    [limit] = (await platform.get("/v1/platform/limits", params={"org_id": str(org)})).json()["limits"]
    assert limit["starts_per_second"] == 2.5
    resumed = await platform.post("/v1/platform/limits/resume", json={**REASON, "job_type": "mail.send"})
    assert resumed.json()["paused_at"] is None
    assert [action for action, _, _ in await trail(app, org)] == ["limit.set", "limit.set"]


async def test_invalid_requests_name_their_fields(platform: httpx.AsyncClient, org: uuid.UUID) -> None:
    unknown_org = f"/v1/platform/orgs/{uuid.uuid4()}"
    for method, path, body in (
        ("GET", unknown_org, None),
        ("PATCH", unknown_org, {**REASON, "name": "x"}),
        ("POST", f"{unknown_org}/keys", {**REASON, "name": "x"}),
        ("PUT", "/v1/platform/limits", {**REASON, "org_id": str(uuid.uuid4()), "max_running": 1}),
    ):
        response = await platform.request(method, path, json=body)
        assert (response.status_code, response.json()["code"]) == (404, "org.unknown"), (path, response.text)
    mine, own = f"/v1/platform/orgs/{org}", f"/v1/platform/orgs/{SYSTEM_ORG}"
    for method, path, body in (
        ("PATCH", mine, REASON),
        ("PATCH", mine, {**REASON, "name": "x", "status": "active"}),
        ("PATCH", own, {**REASON, "status": "suspended"}),
        ("PATCH", mine, {**REASON, "name": "\0"}),
        ("POST", f"{mine}/keys", {**REASON, "name": "x", "scopes": ["platform"]}),
        ("POST", "/v1/platform/orgs", {**REASON, "name": "x", "org_id": str(uuid.UUID(int=0))}),
        ("POST", "/v1/platform/queues", {**REASON, "queue": "slow"}),
        ("POST", "/v1/platform/queues", {**REASON, "queue": "q:deadletter"}),
        ("POST", "/v1/platform/queues/q:default/weight", {**REASON, "weight": 10**30}),
        ("POST", "/v1/platform/queues/%00/pause", REASON),
        ("PUT", "/v1/platform/limits", {**REASON, "max_running": 1}),
        ("PUT", "/v1/platform/limits", {**REASON, "org_id": str(org), "max_running": 10**30}),
        ("PUT", "/v1/platform/limits", {**REASON, "org_id": str(org), "burst": 3}),
        ("PUT", "/v1/platform/limits", {**REASON, "job_type": "a\0b", "max_running": 1}),
        ("PUT", "/v1/platform/limits", {**REASON, "job_type": "a.b", "max_waiting": 1}),
    ):
        response = await platform.request(method, path, json=body)
        assert response.status_code == 422, (path, body, response.text)
    for text in INVALID_TEXTS:
        assert (await platform.get("/v1/platform/limits", params={"job_type": text})).status_code == 422
        for path in ("orgs", "limits"):
            assert (await platform.get(f"/v1/platform/{path}", params={"after": text})).status_code == 422


async def test_an_admin_of_an_org_has_no_platform_access(
    http: httpx.AsyncClient, api: FastAPI, org: uuid.UUID
) -> None:
    count = 0
    for path, item in api.openapi()["paths"].items():
        for method in item if path.startswith("/v1/platform") else ():
            url = path.format(org_id=org, worker_id=org, name="q:default")
            response = await http.request(method, url, json={**REASON, "name": "x", "weight": 1})
            assert (response.status_code, response.json()["code"]) == (403, "auth.forbidden"), (method, path)
            count += 1
    assert count == 19
