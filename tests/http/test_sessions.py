"""Sessions: a browser signs in with a key and gets a cookie with the same scopes, protected against CSRF."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import httpx
import psycopg
import pytest
from fastapi import FastAPI, Request

from duly import Duly
from duly.core.errors import Unauthenticated
from duly.core.job import SYSTEM_ORG, Actor
from duly.core.principal import ROLE_SCOPES, Principal, Role, Scope
from duly.features.api_keys.service import ApiKeys
from duly.features.members.service import Members
from duly.features.sessions.service import Sessions
from duly.http.application import create_app
from duly.http.authentication import sign_in_throttle
from duly.http.authentication.sign_in_throttle import SignInThrottle
from duly.http.options import HttpOptions
from duly.maintenance import retention
from tests.http.conftest import ANNA, caller, key_of

HOME = "http://localhost"
SECURE = "https://duly.test"
BODY = {"reason": "enough"}


@pytest.fixture
def options() -> HttpOptions:
    return HttpOptions(authentication_ttl=timedelta(0))


def browser(api: FastAPI, at: str = HOME) -> httpx.AsyncClient:
    return caller(api, base_url=at)


async def sign_in(client: httpx.AsyncClient, credential: str) -> httpx.Response:
    response = await client.post("/session", json={"credential": credential})
    client.headers["x-csrf-token"] = response.json().get("csrf_token", "")
    return response


def without_request_id(response: httpx.Response) -> tuple[int, dict[str, object]]:
    """Return the status and the body of a response, without its request id."""
    return response.status_code, {k: v for k, v in response.json().items() if k != "request_id"}


async def test_the_session_cookie_is_secure_http_only_and_bound_to_the_host(api: FastAPI, key: str) -> None:
    async with browser(api, SECURE) as client:
        response = await sign_in(client, key)
        session_cookie = response.headers["set-cookie"].split("; ")
        assert response.status_code == 201
        assert session_cookie[0].startswith("__Host-duly=")
        assert {part.lower() for part in session_cookie[1:]} == {
            "secure", "httponly", "samesite=lax", "path=/", "max-age=43200",
        }  # fmt: skip
        assert response.headers["cache-control"] == "no-store"
        assert key not in response.text
        assert session_cookie[0].partition("=")[2] not in response.text
        assert (await client.get("/v1/jobs")).status_code == 200
    async with browser(api) as client:
        plain = (await sign_in(client, key)).headers["set-cookie"]
        assert plain.startswith("duly=")
        assert "httponly" in plain.lower()
        assert "; secure" not in plain.lower()
        assert (await client.get("/v1/jobs")).status_code == 200
    async with browser(api, SECURE) as client:
        # A sibling domain can set cookies for this host, but none with the __Host- prefix.
        insecure = {"cookie": plain.partition(";")[0]}
        assert (await client.get("/v1/jobs", headers=insecure)).status_code == 401
        assert (await client.get("/v1/jobs", headers={**insecure, "host": "localhost"})).status_code == 401


async def test_signing_in_over_plain_http_is_refused(app: Duly, api: FastAPI, key: str) -> None:
    async with browser(api, "http://duly.test") as client:
        code, problem = without_request_id(await sign_in(client, key))
        assert (code, problem["code"]) == (403, "auth.forbidden")
        assert "https" in str(problem["detail"])
        assert not client.cookies
    behind = create_app(app, HttpOptions(public_url="https://duly.test"))
    async with browser(behind, "http://duly.test") as client:
        assert "__Host-duly" in (await sign_in(client, key)).headers["set-cookie"]


async def test_changes_need_a_csrf_token(app: Duly, api: FastAPI, key: str) -> None:
    unknown_job = f"/v1/jobs/{uuid.uuid4()}/cancel"
    async with browser(api) as client:
        await sign_in(client, key)
        csrf_token = client.headers.pop("x-csrf-token")
        with_token = {"x-csrf-token": csrf_token}
        refused = [
            await client.post(unknown_job, json=BODY),
            await client.post(unknown_job, json=BODY, headers={"x-csrf-token": csrf_token[::-1]}),
            await client.post(unknown_job, json=BODY, headers={"x-csrf-token": "\xe9".encode("latin-1")}),
            await client.post(unknown_job, json=BODY, headers={**with_token, "sec-fetch-site": "cross-site"}),
            await client.post(unknown_job, json=BODY, headers={**with_token, "sec-fetch-site": "same-site"}),
            await client.delete("/session"),
        ]  # fmt: skip
        assert {response.status_code for response in refused} == {401}
        ours = {"x-csrf-token": csrf_token, "sec-fetch-site": "same-origin"}
        assert (await client.post(unknown_job, json=BODY, headers=ours)).status_code == 404
        bearer = {"authorization": f"Bearer {key}", "sec-fetch-site": "cross-site"}
        assert (await client.post(unknown_job, json=BODY, headers=bearer)).status_code == 404
        reader = await key_of(
            app, uuid.UUID(str((await client.get("/v1/org")).json()["org_id"])), "jobs:read"
        )
        both = {"authorization": f"Bearer {reader}", **ours}
        assert (await client.post(unknown_job, json=BODY, headers=both)).status_code == 403, "the header wins"
        cross_site = {"sec-fetch-site": "cross-site"}
        assert (
            await client.post("/session", json={"credential": key}, headers=cross_site)
        ).status_code == 401


async def test_all_failed_sign_ins_look_the_same(app: Duly, api: FastAPI, org: uuid.UUID, key: str) -> None:
    async with browser(api) as client:
        wrong = [f"{key[:-1]}{'0' if key[-1] != '0' else '1'}", "duly_live_x", "a.b.c", "x"]
        responses = [
            without_request_id(await client.post("/session", json={"credential": one})) for one in wrong
        ]
        assert all(response == responses[0] for response in responses)
        assert responses[0][0] == 401
        await sign_in(client, key)
        token = client.cookies["duly"]
        assert (await client.get("/v1/jobs")).status_code == 200
        for bad in (token[::-1], token[:-1] + "!", "x" * 43):
            client.cookies.clear()
            refused = await client.get("/v1/jobs", headers={"cookie": f"duly={bad}"})
            assert refused.status_code == 401


async def test_a_session_ends_with_its_key_or_member_and_at_its_expiry(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    keys, members, sessions = ApiKeys(app), Members(app), Sessions(app)
    api_key = await keys.create(org, "k", ["jobs:read"], environment="test", actor=ANNA, reason="r")
    of_key = await sessions.open(await keys.authenticate(api_key.text))
    assert await sessions.authenticate(of_key.token) == await keys.authenticate(api_key.text)

    await members.set(org, "u1", Role.VIEWER, actor=ANNA, reason="r")
    member = Principal(org, Actor.user("u1"), ROLE_SCOPES[Role.VIEWER])
    of_member = await sessions.open(member)
    assert await sessions.authenticate(of_member.token) == member
    await members.set(org, "u1", Role.ADMIN, actor=ANNA, reason="r")
    assert (await sessions.authenticate(of_member.token)).may(Scope.ADMIN)

    async def is_over(token: str) -> bool:
        try:
            await sessions.authenticate(token)
        except Unauthenticated:
            return True
        return False

    sql.execute("update duly.organizations set status = 'suspended' where org_id = %s", [org])
    assert [await is_over(of_key.token), await is_over(of_member.token)] == [True, True]
    sql.execute("update duly.organizations set status = 'active' where org_id = %s", [org])
    await members.remove(org, "u1", actor=ANNA, reason="r")
    await members.set(org, "u1", Role.ADMIN, actor=ANNA, reason="r")
    assert await is_over(of_member.token), "a returning member signs in again"
    assert not await is_over(of_key.token)
    await keys.revoke(org, api_key.key.key_id, actor=ANNA, reason="r")
    assert await is_over(of_key.token)

    last = await sessions.open(member)
    sql.execute("update duly.sessions set expires_at = now()")
    assert await is_over(last.token)
    resources = await app.resources()
    counts = await retention.run_clean_up(resources.database, resources.blobs, app.settings.retention)
    assert counts["sessions"] == 2
    assert sql.execute("select count(*) from duly.sessions").fetchone() == (0,)


async def test_platform_sessions_last_twelve_hours_with_a_key_and_one_hour_with_a_token(
    app: Duly, sql: psycopg.Connection
) -> None:
    key = await key_of(app, SYSTEM_ORG, "platform")
    operator = Principal(SYSTEM_ORG, Actor.operator("o"), frozenset({Scope.PLATFORM}))
    for principal, hours in ((await ApiKeys(app).authenticate(key), 12), (operator, 1)):
        session = await Sessions(app).open(principal)
        left = session.expires_at - datetime.now(UTC)
        assert timedelta(hours=hours, minutes=-1) < left < timedelta(hours=hours, minutes=1)
        assert await Sessions(app).authenticate(session.token) == principal
    rows = sql.execute(
        "select org_id, actor_type, actor_id = 'o' from duly.audit_entries "
        "where action = 'session.opened' order by occurred_at"
    )
    assert rows.fetchall() == [(SYSTEM_ORG, "api_key", False), (SYSTEM_ORG, "operator", True)]
    with pytest.raises(psycopg.errors.CheckViolation):
        sql.execute("update duly.sessions set key_id = null, user_id = null, operator_id = null")


async def test_a_user_lists_and_ends_all_own_sessions(
    app: Duly, api: FastAPI, org: uuid.UUID, key: str, sql: psycopg.Connection
) -> None:
    other = await key_of(app, org, "jobs:read")
    async with browser(api) as here, browser(api) as there, browser(api) as stranger:
        for client, credential in ((here, key), (there, key), (stranger, other)):
            await sign_in(client, credential)
        listed = (await here.get("/session")).json()
        assert [one["current"] for one in listed["sessions"]] == [False, True]
        assert (listed["org_id"], listed["actor_type"]) == (str(org), "api_key")
        assert listed["scopes"] == ["jobs:read", "jobs:write", "operate", "admin"]
        assert len((await stranger.get("/session")).json()["sessions"]) == 1
        session_names = {one["name"] for one in listed["sessions"]}
        assert (await here.delete("/session?everywhere=true")).status_code == 204
        codes = [(await client.get("/session")).status_code for client in (here, there, stranger)]
        assert codes == [401, 401, 200]
    closed = sql.execute("select target_id from duly.audit_entries where action = 'session.closed'")
    assert {name for (name,) in closed} == session_names


async def test_signing_out_ends_the_session_at_once_and_is_audited(
    app: Duly, org: uuid.UUID, key: str, sql: psycopg.Connection
) -> None:
    api = create_app(app, HttpOptions())  # with a cache of authentications
    async with browser(api) as client:
        await sign_in(client, key)
        token = client.cookies["duly"]
        assert (await client.get("/v1/jobs")).status_code == 200
        assert token not in str(sql.execute("select * from duly.sessions").fetchall())
        bearer = {"authorization": f"Bearer {token}"}
        assert (await client.get("/v1/jobs", headers=bearer)).status_code == 401, (
            "a session token is not an API key"
        )
        out = await client.delete("/session")
        assert (out.status_code, out.headers["set-cookie"].lower().split("; ")[0]) == (204, 'duly=""')
        again = await client.get("/v1/jobs", headers={"cookie": f"duly={token}"})
        assert again.status_code == 401
    rows = sql.execute(
        "select action, actor_type, length(target_id) from duly.audit_entries where target_type = 'session' "
        "order by occurred_at"
    ).fetchall()
    assert rows == [("session.opened", "api_key", 16), ("session.closed", "api_key", 16)]


async def test_guessing_credentials_is_throttled_by_address(
    api: FastAPI, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in_throttle, "SIGN_IN_FAILURES_PER_SECOND", 1e-9)
    api.state.service.sign_in_throttle = SignInThrottle()
    async with browser(api) as client:
        codes = [(await sign_in(client, "duly_x")).status_code for _ in range(22)]
        assert (codes[:20], codes[20:]) == ([401] * 20, [429] * 2)
    elsewhere = httpx.ASGITransport(api, client=("192.0.2.7", 1))
    async with httpx.AsyncClient(transport=elsewhere, base_url=HOME) as other:
        assert [(await sign_in(other, key)).status_code for _ in range(22)] == [201] * 22
    for number in range(22):
        # A client with one IPv6 address controls its whole /64 network.
        many = httpx.ASGITransport(api, client=(f"2001:db8::{number}", 1))
        async with httpx.AsyncClient(transport=many, base_url=HOME) as other:
            last = await sign_in(other, "duly_x")
    assert last.status_code == 429
    assert int(last.headers["retry-after"]) >= 1


async def test_failed_sign_ins_are_remembered_for_a_bounded_number_of_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sign_in_throttle, "MAX_SIGN_IN_ADDRESSES", 3)
    throttle = SignInThrottle()

    def request_from(host: str) -> Request:
        return Request({"type": "http", "client": (host, 1), "headers": []})

    for number in range(10):
        throttle.record_failure(request_from(f"192.0.2.{number}"))
    assert len(throttle._failures._buckets) == 3
    throttle.admit(request_from("192.0.2.9"))


async def test_a_session_ends_no_later_than_its_token(app: Duly, org: uuid.UUID) -> None:
    await Members(app).set(org, "u1", "viewer", actor=ANNA, reason="hired")
    now = datetime.now(UTC)
    soon = Principal(org, Actor.user("u1"), ROLE_SCOPES[Role.VIEWER], expires_at=now + timedelta(minutes=5))
    assert (await Sessions(app).open(soon)).expires_at < now + timedelta(minutes=6)
    over = Principal(org, Actor.user("u1"), ROLE_SCOPES[Role.VIEWER], expires_at=now - timedelta(seconds=5))
    with pytest.raises(Unauthenticated):
        await Sessions(app).authenticate((await Sessions(app).open(over)).token)


async def test_a_body_with_very_many_unknown_fields_is_refused(api: FastAPI) -> None:
    async with browser(api) as client:
        flood = await client.post("/session", json={f"f{number}": 1 for number in range(20_000)})
        assert (flood.status_code, flood.json()["code"]) == (400, "payload.refused")
