"""Webhooks over HTTP: scopes, isolation between orgs, and secrets that only one response contains."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import psycopg
from fastapi import FastAPI

from duly import Duly
from duly.core.principal import Principal
from duly.http.application import create_app
from duly.http.options import HttpOptions
from tests.http.conftest import caller, key_of
from tests.http.requests import REASON, check_looks_unknown

URL = "https://hooks.example.com/duly"
NEW: dict[str, Any] = {**REASON, "url": URL, "event_types": ["job.completed", "job.failed"]}


async def create(http: httpx.AsyncClient, **more: Any) -> tuple[str, dict[str, Any]]:
    response = await http.post("/v1/webhooks", json={**NEW, **more})
    assert (response.status_code, response.headers["cache-control"]) == (201, "no-store"), response.text
    return response.headers["location"], response.json()


async def test_a_webhook_is_created_updated_rotated_disabled_and_deleted(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    url, created = await create(http, job_types=["mail.send"], description="chat")
    secrets = [created.pop("secret")]
    assert secrets[0].startswith("whsec_")
    assert (await http.get(url)).json() == created
    assert (await http.get("/v1/webhooks")).json() == {"endpoints": [created], "after": None}
    changed = (await http.patch(url, json={**REASON, "job_types": [], "event_types": ["job.*"]})).json()
    assert (changed["job_types"], changed["event_types"], changed["url"]) == (None, ["job.*"], URL)
    rotated = await http.post(f"{url}/rotate", json={**REASON, "overlap_seconds": 60})
    assert (rotated.status_code, rotated.headers["cache-control"]) == (200, "no-store")
    secrets.append(rotated.json()["secret"])
    assert rotated.json()["old_secret_until"] is not None
    off = (await http.post(f"{url}/disable", json=REASON)).json()
    assert (off["disable_reason"], off["disabled_at"] is None) == (REASON["reason"], False)
    late = await http.post(f"{url}/test", json=REASON)
    assert (late.status_code, late.json()["code"]) == (409, "conflict")
    assert (await http.post(f"{url}/enable", json=REASON)).json()["disabled_at"] is None
    everything = [off, (await http.get(url)).text, (await http.get("/v1/audit")).text]
    assert not [secret for secret in secrets if secret in str(everything)]

    endpoint_id = uuid.UUID(created["endpoint_id"])
    for method, path, body in (
        ("GET", "/v1/webhooks/{}", None),
        ("GET", "/v1/webhooks/{}/deliveries", None),
        ("PATCH", "/v1/webhooks/{}", {**REASON, "url": "https://example.org"}),
        ("POST", "/v1/webhooks/{}/rotate", REASON),
    ):
        await check_looks_unknown(stranger, method, path, endpoint_id, **({"json": body} if body else {}))
    assert (await stranger.get("/v1/webhooks")).json()["endpoints"] == []
    assert (await http.delete(url, params=REASON)).status_code == 204
    gone = await http.get(url)
    assert (gone.status_code, gone.json()["code"]) == (404, "webhook.unknown")


async def test_deliveries_are_listed_read_and_resent(
    http: httpx.AsyncClient, sql: psycopg.Connection
) -> None:
    url, _ = await create(http)
    sent = [await http.post(f"{url}/test", json=REASON) for _ in range(3)]
    assert {response.status_code for response in sent} == {202}
    first = sent[0].json()
    assert (first["event_type"], first["status"], first["try_log"]) == ("webhook.test", "pending", [])
    assert first["job_id"] is None, "a test is not about a job"
    page = (await http.get(f"{url}/deliveries", params={"limit": 2, "status": "pending"})).json()
    rest = (await http.get(f"{url}/deliveries", params={"limit": 2, "after": page["after"]})).json()
    listed = [one["message_id"] for one in page["deliveries"] + rest["deliveries"]]
    assert (listed, rest["after"]) == ([response.json()["message_id"] for response in reversed(sent)], None)
    sql.execute("update duly.webhook_deliveries set status = 'failed', ended_at = now(), tries = 10")
    message = f"{url}/deliveries/{first['message_id']}"
    assert (await http.get(message)).json()["status"] == "failed"
    again = await http.post(f"{message}/resend", json=REASON)
    assert (again.status_code, again.json()["status"], again.json()["tries"]) == (202, "pending", 0)
    since = {**REASON, "since": "2026-01-01T00:00:00Z"}
    for expected in ({"count": 2, "more": False}, {"count": 0, "more": False}):
        done = await http.post(f"{url}/resend-failed", json=since)
        assert (done.status_code, done.json()) == (202, expected)
    unknown = await http.get(f"{url}/deliveries/evt_{uuid.uuid4().hex}_1")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "delivery.unknown")


async def test_invalid_fields_are_named_without_repeating_a_secret(http: httpx.AsyncClient) -> None:
    leak = "whsec_" + "Zm9v" * 5
    for wrong, field in (
        ({"url": "http://example.com"}, "url"),
        ({"url": "https://10.0.0.1/x"}, "url"),
        ({"url": "https://169.254.169.254/latest"}, "url"),
        ({"event_types": []}, "event_types"),
        ({"event_types": ["job.done"]}, "event_types"),
        ({"job_types": ["duly.notify"]}, "job_types"),
        ({"secret": leak}, "secret"),
        ({"secret": leak + "A" * 17}, "secret"),
        ({"description": "x" * 501}, "description"),
        ({"reason": ""}, "reason"),
        ({"secrets": []}, "secrets"),
    ):
        response = await http.post("/v1/webhooks", json={**NEW, **wrong})
        assert (response.status_code, response.json()["errors"][0]["field"]) == (422, field), response.text
        assert leak not in response.text
    url, _ = await create(http)
    for path in ("", "?status=lost", "?limit=0", "?after=x", "?job_id=x"):
        response = await http.get(f"{url}/deliveries{path}")
        assert response.status_code == (422 if path else 200), path
    assert (await http.get(f"{url}/deliveries/evt_1_1")).status_code == 422
    assert (await http.get("/v1/webhooks/x")).status_code == 422


async def test_operators_read_and_resend_and_administrators_change_webhooks(
    app: Duly, api: FastAPI, org: uuid.UUID, http: httpx.AsyncClient
) -> None:
    url, _ = await create(http)
    message = (await http.post(f"{url}/test", json=REASON)).json()["message_id"]
    since = {**REASON, "since": "2026-01-01T00:00:00Z"}
    operate: list[tuple[str, str, Any]] = [
        ("GET", "/v1/webhooks", None),
        ("GET", url, None),
        ("GET", f"{url}/deliveries", None),
        ("GET", f"{url}/deliveries/{message}", None),
        ("POST", f"{url}/deliveries/{message}/resend", REASON),
        ("POST", f"{url}/resend-failed", since),
        ("POST", f"{url}/test", REASON),
    ]
    administer: list[tuple[str, str, Any]] = [
        ("POST", "/v1/webhooks", NEW),
        ("PATCH", url, REASON),
        ("POST", f"{url}/disable", REASON),
        ("POST", f"{url}/enable", REASON),
        ("POST", f"{url}/rotate", REASON),
        ("DELETE", f"{url}?reason=r", None),
    ]
    for scopes, allowed, refused in (
        (("jobs:read", "jobs:write", "operate"), operate, administer),
        (("jobs:read", "jobs:write", "admin"), administer, operate),
    ):
        async with caller(api, await key_of(app, org, *scopes)) as client:
            for method, path, body in refused:
                response = await client.request(method, path, json=body)
                assert (response.status_code, response.json()["code"]) == (403, "auth.forbidden"), path
            for method, path, body in allowed:
                assert (await client.request(method, path, json=body)).status_code < 300, path


async def test_webhooks_need_access_to_every_subject(app: Duly, key: str, http: httpx.AsyncClient) -> None:
    async def may(principal: Principal, subject_id: str, action: str) -> bool:
        return subject_id != "*"

    url, _ = await create(http)
    async with caller(create_app(app, HttpOptions(may=may)), key) as narrow:
        for method, path, body in (
            ("POST", "/v1/webhooks", NEW),
            ("PATCH", url, {**REASON, "url": "https://example.org"}),
            ("GET", f"{url}/deliveries", None),
        ):
            assert (await narrow.request(method, path, json=body)).status_code == 403, path
        assert (await narrow.post(f"{url}/disable", json=REASON)).status_code == 200
