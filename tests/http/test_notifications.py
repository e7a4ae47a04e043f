"""Notifications over HTTP: users manage their own, operators those of others, admins the templates."""

from __future__ import annotations

import uuid

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from duly import Actor, Duly
from duly.core.principal import Principal
from duly.http.application import create_app
from duly.http.options import HttpOptions
from tests.features.notifications.delivering import dispatch, new_dispatcher
from tests.http.conftest import caller, key_of
from tests.http.requests import REASON

MAIL = "email:anna@example.com"


@pytest.fixture
async def reader(app: Duly, api: FastAPI, org: uuid.UUID) -> httpx.AsyncClient:
    """A client that may read and submit jobs only."""
    return caller(api, await key_of(app, org, "jobs:read", "jobs:write"))


async def test_notifications_are_sent_and_read(
    http: httpx.AsyncClient, reader: httpx.AsyncClient, app: Duly, org: uuid.UUID
) -> None:
    me = (await reader.get("/v1/notification-preferences")).json()["to"]
    body = {
        "template_key": "job.failed",
        "payload": {"job_type": "report.build"},
        "to": [me, MAIL],
        "locale": "de",
    }
    first = await http.post("/v1/notifications", json=body)
    assert first.status_code == 202
    assert [one["created"] for one in first.json()["notifications"]] == [True, True]
    again = (await http.post("/v1/notifications", json=body)).json()["notifications"]
    assert [one["created"] for one in again] == [False, False]
    await dispatch(new_dispatcher(app))
    [notification] = (await reader.get("/v1/inbox", params={"unread": "true"})).json()["notifications"]
    assert (notification["subject"], notification["read_at"]) == ("report.build ist fehlgeschlagen", None)
    assert (await http.get("/v1/inbox")).json() == {"notifications": [], "unread": 0, "after": None}
    ids = {"notification_ids": [notification["notification_id"]]}
    assert (await http.post("/v1/inbox/read", json=ids)).json() == {"read": 0}
    assert (await reader.post("/v1/inbox/read", json=ids)).json() == {"read": 1}
    assert (await reader.get("/v1/inbox")).json()["unread"] == 0
    listed = (await http.get("/v1/notifications", params={"channel": "email"})).json()["notifications"]
    assert [(one["recipient"], one["delivery_status"]) for one in listed] == [("anna@example.com", "pending")]
    detail = (await http.get(f"/v1/notifications/{notification['notification_id']}")).json()
    assert (detail["delivery_status"], detail["attempt_count"], detail["read_at"] is None) == (
        "sent",
        1,
        False,
    )
    resend = [f"/v1/notifications/{one['notification_id']}/resend" for one in (notification, listed[0])]
    assert (await http.post(resend[0], json=REASON)).json()["code"] == "conflict"
    waiting = await http.post(resend[1], json=REASON)
    assert (waiting.status_code, waiting.json()["delivery_status"]) == (202, "pending")
    assert (await reader.post(resend[1], json=REASON)).status_code == 403


async def test_readers_cannot_send_to_other_recipients(
    reader: httpx.AsyncClient, http: httpx.AsyncClient, app: Duly, org: uuid.UUID
) -> None:
    me = (await reader.get("/v1/notification-preferences")).json()["to"]
    for method, path, body in (
        ("POST", "/v1/notifications", {"template_key": "job.failed", "to": [MAIL]}),
        ("POST", "/v1/notifications", {"template_key": "job.failed", "to": [me]}),
        ("POST", "/v1/notifications/preview", {"subject": "s", "body": "b"}),
        ("GET", "/v1/notifications", None),
        ("POST", "/v1/subscriptions", {"to": MAIL}),
        ("POST", "/v1/subscriptions", {"to": "in_app:another-user"}),
        ("GET", "/v1/subscriptions?all=true", None),
        ("PUT", "/v1/notification-preferences", {"to": MAIL, "wanted": False}),
        ("GET", f"/v1/notification-preferences?to={MAIL}", None),
        ("PUT", "/v1/notification-templates/job.failed", {**REASON, "subject": "s", "body": "b"}),
        ("GET", "/v1/notification-suppressions", None),
        ("POST", "/v1/notification-suppressions", {**REASON, "to": me}),
        ("DELETE", f"/v1/notification-suppressions?to={MAIL}&reason=r", None),
    ):
        response = await reader.request(method, path, json=body)
        assert (response.status_code, response.json()["code"]) == (403, "auth.forbidden"), (method, path)
    mine = await reader.post("/v1/subscriptions", json={"outcomes": ["failed"]})
    assert (mine.status_code, f"in_app:{mine.json()['recipient']}") == (201, me)
    others = (await http.post("/v1/subscriptions", json={"to": MAIL, "locale": "de"})).json()
    assert [
        one["subscription_id"] for one in (await reader.get("/v1/subscriptions")).json()["subscriptions"]
    ] == [mine.json()["subscription_id"]]
    assert len((await http.get("/v1/subscriptions?all=true")).json()["subscriptions"]) == 2
    for client, subscription, status in (
        (reader, others, 404),
        (reader, mine.json(), 204),
        (reader, mine.json(), 404),
        (http, others, 204),
    ):
        url = f"/v1/subscriptions/{subscription['subscription_id']}"
        assert (await client.delete(url)).status_code == status
    preferences = await reader.put(
        "/v1/notification-preferences", json={"template_key": "job.failed", "wanted": False}
    )
    assert [(one["template_key"], one["wanted"]) for one in preferences.json()["preferences"]] == [
        ("job.failed", False)
    ]


async def test_templates_are_previewed_stored_and_deleted(
    http: httpx.AsyncClient, sql: psycopg.Connection
) -> None:
    url = "/v1/notification-templates/invoice.due"
    template = {"subject": "Rechnung {{ n }}", "body": "{% if n > 3 %}{{ n|number }}{% endif %}"}
    preview = await http.post(
        "/v1/notifications/preview", json={**template, "payload": {"n": 1234}, "locale": "de"}
    )
    assert preview.json() == {"subject": "Rechnung 1234", "body": "1.234"}
    for body, problem in (
        ("{{ x.__class__ }}", "line 1: '__class__' cannot be read"),
        ("{{ missing }}", "'missing' is undefined"),
        ("{{ 1e999|upper }}", "line 1: a number is too large"),
    ):
        refused = await http.post("/v1/notifications/preview", json={"subject": "s", "body": body})
        assert refused.status_code == 422
        assert refused.json()["errors"][0] | {"fix": ""} == {"field": "body", "message": problem, "fix": ""}
    assert (await http.put(f"{url}?locale=de-at", json={**REASON, **template})).json()["locale"] == "de-AT"
    body = {"template_key": "invoice.due", "to": ["in_app:u"], "payload": {"n": 5}}
    assert (await http.post("/v1/notifications", json=body)).json()["code"] == "template.unknown"
    assert (await http.post("/v1/notifications", json={**body, "locale": "de-AT"})).status_code == 202
    assert [one["locale"] for one in (await http.get("/v1/notification-templates")).json()["templates"]] == [
        "de-AT"
    ]
    assert (await http.get(url)).status_code == 404
    assert (await http.delete(f"{url}?locale=de-AT&reason=r")).status_code == 204
    suppressed = await http.post("/v1/notification-suppressions", json={**REASON, "to": MAIL})
    assert (suppressed.status_code, suppressed.json()["recipient"]) == (200, "anna@example.com")
    for _ in range(2):
        gone = await http.delete("/v1/notification-suppressions", params={"to": MAIL, "reason": "r"})
        assert gone.status_code == 204
    assert (await http.get("/v1/notification-suppressions")).json()["suppressions"] == []


async def test_notifications_about_invisible_jobs_are_redacted(app: Duly, org: uuid.UUID) -> None:
    @app.job("report.build")
    async def build() -> int:
        return 1

    handle = await build.options(org_id=org, actor=Actor.user("u"), subject_id="secret").enqueue()

    key = await key_of(app, org)
    async with caller(create_app(app, HttpOptions()), key) as client:
        me = (await client.get("/v1/notification-preferences")).json()["to"]
        notification = {"template_key": "job.failed", "to": [me], "payload": {"subject_id": "secret"}}
        for about in ({"job_id": str(handle.job_id)}, {"bucket": "b"}):
            assert (await client.post("/v1/notifications", json={**notification, **about})).status_code == 202
        await dispatch(new_dispatcher(app))

    async def may(principal: Principal, subject_id: str, action: str) -> bool:
        return False

    async with caller(create_app(app, HttpOptions(may=may)), key) as client:
        for body, status in (
            ({"job_id": str(handle.job_id)}, 404),
            ({}, 403),
            ({"job_type": "report.build"}, 403),
        ):
            assert (await client.post("/v1/subscriptions", json=body)).status_code == status
        body = {"template_key": "job.failed", "to": ["in_app:u"], "job_id": str(handle.job_id)}
        assert (await client.post("/v1/notifications", json=body)).json()["code"] == "job.unknown"
        for path in ("/v1/notifications", "/v1/subscriptions?all=true"):
            assert (await client.get(path)).status_code == 403
        plain, about = (await client.get("/v1/inbox")).json()["notifications"]
        assert "secret" in plain["body"]
        assert (about["job_id"], about["subject"], about["body"]) == (str(handle.job_id), None, None)
