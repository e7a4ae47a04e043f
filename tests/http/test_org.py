"""The org of the client: its statistics, keys, members and audit trail, and no other org's."""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64encode
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from duly import Duly, context
from duly.features.limits.service import Limits
from duly.features.queues.service import Queues
from duly.http.options import HttpOptions
from tests.db.open_transactions import wait_for_transactions
from tests.http.conftest import ANNA, caller, key_of
from tests.http.requests import INVALID_TEXTS, REASON, check_looks_unknown, platform_key
from tests.worker.working import WAIT_TIMEOUT, working

BOB = "auth0|bob/1"
MEMBER_URL = "/v1/members/" + quote(BOB, safe="")


@pytest.fixture
def options() -> HttpOptions:
    """Without a cache, so that a revoked key is refused at once."""
    return HttpOptions(authentication_ttl=timedelta(0))


async def test_an_org_sees_its_own_statistics(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient, app: Duly, org: uuid.UUID
) -> None:
    @app.job("mail.send")
    def send(to: int) -> None: ...

    with context(org_id=org, actor=ANNA):
        await app.enqueue_many([send.call(n) for n in range(3)])
    await Limits(app).set(org, max_running=7, actor=ANNA, reason="r")
    await Limits(app).set(org, "mail.send", starts_per_second=2, actor=ANNA, reason="r")
    await Limits(app).set(job_type="mail.send", max_running=99, actor=ANNA, reason="r")
    await Queues(app).pause("q:planning", actor=ANNA, reason="r")

    mine, theirs = (await http.get("/v1/org")).json(), (await stranger.get("/v1/org")).json()
    assert (mine["org_id"], mine["name"], mine["status"]) == (str(org), "Acme", "active")
    assert (mine["limits"]["max_running"], theirs["limits"]["max_running"]) == (7, None)
    [share] = mine["overview"]["waiting"]
    assert (share["queue"], share["waiting"]) == ("q:default", {"count": 3, "at_least": False})
    overview = (await http.get("/v1/org/overview")).json()
    assert {**overview, "looked_at": 0} == {**mine["overview"], "looked_at": 0}
    assert "workers" not in overview
    assert (theirs["name"], theirs["overview"]["waiting"]) == ("Other", [])
    assert (await stranger.get("/v1/org/overview")).json()["waiting"] == []

    limits = (await http.get("/v1/org/limits")).json()
    assert [one["job_type"] for one in limits["limits"]] == [None, "mail.send"]
    assert (await stranger.get("/v1/org/limits")).json() == {"limits": [], "after": None}

    def waiting(response: httpx.Response) -> dict[str, int]:
        return {one["queue"]: one["waiting"]["count"] for one in response.json()["queues"]}

    queues = await http.get("/v1/queues")
    assert {one["queue"] for one in queues.json()["queues"] if one["paused_at"]} == {"q:planning"}
    assert waiting(queues)["q:default"] == 3
    assert set(waiting(await stranger.get("/v1/queues")).values()) == {0}


async def test_an_api_key_is_created_used_rotated_and_revoked(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient, api: FastAPI, key: str, sql: psycopg.Connection
) -> None:
    body = {**REASON, "name": "ci", "scopes": ["jobs:read", "admin"]}
    created = await http.post("/v1/keys", json=body)
    assert (created.status_code, created.headers["cache-control"]) == (201, "no-store")
    api_key = created.json()
    text, url = api_key.pop("text"), created.headers["location"]
    assert (await http.get(url)).json() == api_key
    async with caller(api, text) as ci:
        assert (await ci.get("/v1/jobs")).status_code == 200
        for scopes in (["jobs:write"], ["jobs:read", "operate"], ["platform"]):
            more = await ci.post("/v1/keys", json={**body, "scopes": scopes})
            assert (more.status_code, more.json()["code"]) == (403, "auth.forbidden")
        first = (await http.get("/v1/keys")).json()["keys"]
        strong = next(one["key_id"] for one in first if one["name"] == "tests")
        assert (await ci.post(f"/v1/keys/{strong}/rotate", json=REASON)).status_code == 403
        rotated = await ci.post(f"{url}/rotate", json={**REASON, "overlap_seconds": 60})
        assert (rotated.status_code, rotated.headers["cache-control"]) == (201, "no-store")
        assert (await ci.get("/v1/org")).status_code == 200
        for _ in range(2):
            ended = await http.post(f"{url}/revoke", json=REASON)
            assert (ended.status_code, ended.json()["alive"]) == (200, False)
        assert (await ci.get("/v1/org")).status_code == 401
    async with caller(api, rotated.json()["text"]) as successor:
        assert (await successor.get("/v1/org")).status_code == 200
    late = await http.post(f"{url}/rotate", json=REASON)
    assert (late.status_code, late.json()["code"]) == (409, "conflict")
    page = (await http.get("/v1/keys", params={"limit": 2})).json()
    rest = (await http.get("/v1/keys", params={"limit": 2, "after": page["after"]})).json()
    assert (len(page["keys"]), len(rest["keys"]), rest["after"]) == (2, 1, None)
    secret = text.rpartition("_")[2]
    everything = [page, rest, (await http.get("/v1/audit")).json()]
    assert secret not in str(everything)

    assert len((await stranger.get("/v1/keys")).json()["keys"]) == 1
    await check_looks_unknown(stranger, "GET", "/v1/keys/{}", strong)
    for verb in ("revoke", "rotate"):
        await check_looks_unknown(stranger, "POST", f"/v1/keys/{{}}/{verb}", strong, json=REASON)


async def test_members_are_added_and_removed(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient, app: Duly, api: FastAPI, org: uuid.UUID
) -> None:
    put = await http.put(MEMBER_URL, json={**REASON, "role": "admin"})
    assert (put.status_code, put.json()["user_id"], put.json()["role"]) == (200, BOB, "admin")
    assert (await http.get(MEMBER_URL)).json() == put.json()
    assert (await http.get("/v1/members")).json() == {"members": [put.json()], "after": None}
    async with caller(api, await key_of(app, org, "admin", "jobs:read")) as weak:
        assert (await weak.put(MEMBER_URL, json={**REASON, "role": "operator"})).status_code == 403
        assert (await weak.put(MEMBER_URL, json={**REASON, "role": "viewer"})).status_code == 200
    assert (await stranger.get("/v1/members")).json() == {"members": [], "after": None}
    theirs = await stranger.get(MEMBER_URL)
    unknown = await stranger.get(MEMBER_URL + "x")
    assert (theirs.status_code, unknown.status_code) == (404, 404)
    assert theirs.json()["detail"] == unknown.json()["detail"].replace(BOB + "x", BOB)
    assert (await stranger.delete(MEMBER_URL, params=REASON)).status_code == 404
    assert (await stranger.put(MEMBER_URL, json={**REASON, "role": "viewer"})).status_code == 200
    assert (await http.delete(MEMBER_URL, params=REASON)).status_code == 204
    assert (await http.delete(MEMBER_URL, params=REASON)).status_code == 404
    assert (await stranger.get(MEMBER_URL)).status_code == 200


async def test_the_audit_trail_is_read_and_verified(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    for role in ("viewer", "operator"):
        await http.put(MEMBER_URL, json={**REASON, "role": role}, headers={"x-request-id": f"r-{role}"})
    entries = (await http.get("/v1/audit", params={"action": "member.set"})).json()["entries"]
    assert [(e["request_id"], e["reason"], e["target_id"]) for e in entries] == [
        ("r-operator", REASON["reason"], BOB),
        ("r-viewer", REASON["reason"], BOB),
    ]
    page = (await http.get("/v1/audit", params={"limit": 1})).json()
    rest = (await http.get("/v1/audit", params={"limit": 1, "after": page["after"]})).json()
    assert page["entries"] + rest["entries"] == entries
    late = {"since": "9999-12-31T23:59:59-12:00"}
    assert (await http.get("/v1/audit", params=late)).json()["entries"] == []
    early = {"until": entries[1]["occurred_at"], "actor": "anna"}
    [entry_of_key] = (await http.get("/v1/audit", params=early)).json()["entries"]
    assert entry_of_key["action"] == "key.created"
    report = (await http.get("/v1/audit/verify")).json()
    assert (report["ok"], report["unsealed"], report["problems"]) == (True, 3, [])
    wrong = (await http.get("/v1/audit/verify", params={"expect": "ab" * 32})).json()
    assert (wrong["ok"], wrong["problems"][0]["kind"]) == (False, "head_unknown")
    theirs = (await stranger.get("/v1/audit")).json()["entries"]
    assert [entry["action"] for entry in theirs] == ["key.created", "org.created"]
    assert (await stranger.get("/v1/audit/verify")).json()["unsealed"] == 2


async def test_a_job_verifies_the_audit_trail(http: httpx.AsyncClient, app: Duly, org: uuid.UUID) -> None:
    started = await http.post("/v1/audit/verify")
    again = await http.post("/v1/audit/verify")
    assert (started.status_code, again.json()["job_id"]) == (202, started.json()["job_id"])
    async with working(app):
        await app.handle(started.json()["job_id"], org_id=org).wait(WAIT_TIMEOUT)
    done = (await http.get(started.json()["status_url"])).json()
    report = (await http.get(done["result_url"])).json()
    value = report["snapshot"]["value"]
    assert (value["ok"], value["seals"]) == (True, 0)


async def test_a_job_records_a_change_and_events_have_audit_names(
    http: httpx.AsyncClient,
    stranger: httpx.AsyncClient,
    app: Duly,
    api: FastAPI,
    org: uuid.UUID,
    sql: psycopg.Connection,
) -> None:
    change = {"target_type": "sheet", "target_id": "7", "before": {"n": 1}, "after": {"n": 2}, "locale": "de"}
    key = {"idempotency-key": "sheet-7-2"}
    done = await http.post(
        "/v1/audit/changes", json={**change, **REASON, "names": {"n": "Zahl"}}, headers=key
    )
    assert (done.status_code, done.headers["location"]) == (202, done.json()["status_url"])
    again = await http.post("/v1/audit/changes", json={**change, "after": {"n": 3}}, headers=key)
    assert (again.status_code, again.json()["code"]) == (422, "idempotency.reused")
    async with working(app):
        await app.handle(done.json()["job_id"], org_id=org).wait(WAIT_TIMEOUT)
    [entry] = (await http.get("/v1/audit", params={"action": "sheet.changed"})).json()["entries"]
    assert (entry["detail"]["summary"], entry["actor_type"]) == ("Zahl: 1 → 2", "api_key")
    assert entry["reason"] == REASON["reason"]
    wait_for_transactions(sql)
    audit_events = (await http.get("/v1/audit/events")).json()
    assert [one["action"] for one in audit_events["events"]] == [
        "job.enqueued",
        "job.started",
        "job.succeeded",
    ]
    rest = (await http.get("/v1/audit/events", params={"after": audit_events["events"][0]["cursor"]})).json()
    assert rest["events"] == audit_events["events"][1:]
    assert (await stranger.get("/v1/audit/events")).json()["events"] == []
    async with caller(api, await key_of(app, org, "jobs:read", "jobs:write", "operate")) as operator:
        assert (await operator.post("/v1/audit/changes", json=change)).status_code == 403
        assert (await operator.get("/v1/audit/events")).status_code == 403
        assert (await operator.post("/v1/audit/verify")).status_code == 403
        plain = {"job_type": "duly.enrich_audit", "payload": change}
        assert (await operator.post("/v1/jobs", json=plain)).json()["code"] == "job_type.unknown"


async def test_invalid_requests_name_their_fields(
    http: httpx.AsyncClient, app: Duly, api: FastAPI, org: uuid.UUID
) -> None:
    key: dict[str, Any] = {**REASON, "name": "ci", "scopes": ["jobs:read"]}
    for wrong, field in (
        ({"scopes": []}, "scopes"),
        ({"scopes": ["root"]}, "scopes.0"),
        ({"name": "a\0"}, "name"),
        ({"environment": "Live"}, "environment"),
        ({"expires_at": "2000-01-01T00:00:00Z"}, "expires_at"),
        ({"expires_at": "2099-01-01T00:00:00"}, "expires_at"),
        ({"expires_at": "9999-12-31T23:59:59-23:59"}, "expires_at"),
        ({"expires_at": 10**30}, "expires_at"),
    ):
        response = await http.post("/v1/keys", json={**key, **wrong})
        assert (response.status_code, response.json()["errors"][0]["field"]) == (422, field), response.text
    texts = [
        *INVALID_TEXTS,
        *(urlsafe_b64encode(s).decode() for s in (b"\0", b"x\0 y", b"\xff")),
    ]
    for path in ("/v1/keys", "/v1/members", "/v1/audit", "/v1/org/limits", "/v1/dead-letters"):
        for text in texts:
            assert (await http.get(path, params={"after": text})).status_code == 422, (path, text)
        for limit in ("0", "501", "9" * 30, "x"):
            assert (await http.get(path, params={"limit": limit})).status_code == 422, (path, limit)
    zero = urlsafe_b64encode(f"{uuid.UUID(int=0)} \0".encode()).decode()
    assert (await http.get("/v1/org/limits", params={"after": zero})).status_code == 422
    for since in ("yesterday", "2026-01-01T00:00:00", "9" * 30):
        assert (await http.get("/v1/audit", params={"since": since})).status_code == 422, since
    for text in INVALID_TEXTS:
        for path in (f"/v1/members/{quote(text)}", f"/v1/keys/{quote(text)}"):
            assert (await http.get(path)).status_code == 422, path
        assert (await http.get("/v1/audit", params={"action": text})).status_code == 422
    async with caller(api, await key_of(app, org, "jobs:read", "jobs:write", "operate")) as operator:
        for path in ("/v1/keys", "/v1/keys/x", "/v1/members", MEMBER_URL, "/v1/audit", "/v1/audit/verify"):
            assert (await operator.get(path)).status_code == 403, path
    async with caller(api, await platform_key(app)) as platform:
        for path in ("/v1/keys", "/v1/members", "/v1/audit", "/v1/org", "/v1/queues", "/v1/feed", "/v1/jobs"):
            assert (await platform.get(path)).status_code == 403, path


async def test_projects_are_created_and_jobs_belong_to_them(
    app: Duly, http: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    @app.job("report.build")
    def build() -> None: ...

    created = await http.post("/v1/projects", json={"name": "Berlin", "reason": "a new office"})
    assert created.status_code == 201
    project = created.json()["project_id"]
    body = {"job_type": "report.build", "project_id": project}
    job = await http.post("/v1/jobs", json=body)
    assert (await http.get(job.json()["status_url"])).json()["project_id"] == project
    assert [one["name"] for one in (await http.get("/v1/projects")).json()["projects"]] == ["Berlin"]
    assert (await stranger.get("/v1/projects")).json()["projects"] == []
    assert (await stranger.post("/v1/jobs", json=body)).json()["code"] == "project.unknown"
    again = {"project_id": project, "name": "Kiel", "reason": "moved"}
    assert (await http.post("/v1/projects", json=again)).status_code == 409
