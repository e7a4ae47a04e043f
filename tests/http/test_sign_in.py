"""Signing in at the identity provider: once, in the same browser, and back to own paths only."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from duly import Duly
from duly.core.errors import ConfigurationError
from duly.core.job import SYSTEM_ORG
from duly.features.members.service import Members
from duly.http.application import create_app
from duly.http.authentication import identity_provider as provider
from duly.http.authentication import sign_in, sign_in_throttle
from duly.http.authentication.jwt import Issuer, OidcClient
from duly.http.options import HttpOptions
from tests.http.conftest import ANNA, caller
from tests.http.issuer import CLIENT, LocalIssuer, issuing

SECURE = "https://duly.test"
HOME = "http://localhost"


@pytest.fixture
async def issuer() -> AsyncIterator[LocalIssuer]:
    async with issuing() as one:
        yield one


def trusting(issuer: LocalIssuer, **more: Any) -> HttpOptions:
    trusted = Issuer(issuer.url, "duly", platform_claim="ops")
    known = OidcClient(CLIENT, issuer.secret, label="Acme & Söhne", scopes="openid email")
    return HttpOptions(issuers=(trusted,), sign_in=known, authentication_ttl=timedelta(0), **more)


def browser(api: FastAPI, at: str = SECURE) -> httpx.AsyncClient:
    return caller(api, base_url=at)


@pytest.fixture
async def member(app: Duly, org: uuid.UUID, issuer: LocalIssuer) -> str:
    """A member of the org whom the provider knows too."""
    await Members(app).set(org, "u1", "operator", actor=ANNA, reason="hired")
    issuer.person = {"sub": "u1", "org_id": str(org)}
    return "u1"


async def sign_in_at_provider(client: httpx.AsyncClient, next_path: str = "/jobs") -> str:
    """Sign in at the provider; return the redirect back to the service."""
    redirect = await client.get("/login/start", params={"next": next_path})
    assert redirect.status_code == 303
    async with httpx.AsyncClient() as outside:
        return (await outside.get(redirect.headers["location"])).headers["location"]


async def test_a_member_signs_in_at_the_provider_and_returns_to_the_requested_page(
    app: Duly, org: uuid.UUID, issuer: LocalIssuer, member: str, sql: psycopg.Connection
) -> None:
    async with browser(create_app(app, trusting(issuer))) as client:
        page = (await client.get("/login?next=/jobs%3Fstatus%3Dfailed")).text
        link = re.search(r'id="sso" href="([^"]*)">([^<]*)<', page)
        assert link
        assert link.groups() == (
            "/login/start?next=%2Fjobs%3Fstatus%3Dfailed", "Sign in with Acme &amp; Söhne",
        )  # fmt: skip
        redirect = await client.get(link[1])
        cookie = redirect.headers["set-cookie"].split("; ")
        assert cookie[0].startswith("__Host-duly-way=")
        assert {part.lower() for part in cookie[1:]} == {
            "secure", "httponly", "samesite=lax", "path=/", "max-age=600",
        }  # fmt: skip
        query = parse_qs(urlsplit(redirect.headers["location"]).query)
        assert query["redirect_uri"] == [f"{SECURE}/login/back"]
        assert query["scope"] == ["openid email"]
        secret = cookie[0].partition("=")[2].partition(".")[0]
        assert secret not in redirect.headers["location"]
        back = await client.get(await sign_in_at_provider(client, "/jobs?status=failed"))
        assert (back.status_code, back.headers["location"]) == (303, "/jobs?status=failed")
        assert '__Host-duly-way=""' in back.headers["set-cookie"]
        me = (await client.get("/session")).json()
        assert (me["org_id"], me["actor_type"], me["actor_id"]) == (str(org), "user", "u1")
        [session] = me["sessions"]
        left = datetime.fromisoformat(session["expires_at"]) - datetime.now(UTC)
        assert left > timedelta(hours=11), "the session outlives the ID token"
        await Members(app).remove(org, "u1", actor=ANNA, reason="left")
        assert (await client.get("/session")).status_code == 401
    [(actor_id, action)] = sql.execute(
        "select actor_id, action from duly.audit_entries where org_id = %s and target_type = 'session'", [org]
    ).fetchall()
    assert (actor_id, action) == ("u1", "session.opened")


async def test_an_operator_of_the_installation_signs_in_for_an_hour(
    app: Duly, issuer: LocalIssuer, sql: psycopg.Connection
) -> None:
    issuer.person = {"sub": "ops-1", "ops": True}
    async with browser(create_app(app, trusting(issuer))) as client:
        assert (await client.get(await sign_in_at_provider(client))).status_code == 303
        me = (await client.get("/session")).json()
        assert (me["org_id"], me["actor_type"], me["actor_id"]) == (str(SYSTEM_ORG), "operator", "ops-1")
        assert me["scopes"] == ["platform"]
        left = datetime.fromisoformat(me["sessions"][0]["expires_at"]) - datetime.now(UTC)
        assert timedelta(minutes=58) < left <= timedelta(hours=1)
        assert (await client.get("/v1/platform/orgs")).status_code == 200
        assert (await client.get("/v1/jobs")).status_code == 403
    rows = sql.execute("select org_id, actor_type from duly.audit_entries where action = 'session.opened'")
    assert rows.fetchall() == [(SYSTEM_ORG, "operator")]


async def test_the_client_secret_is_sent_as_the_provider_requires(
    app: Duly, issuer: LocalIssuer, member: str
) -> None:
    for secret, auth_method in (
        (None, "none"),
        ("p:ss w%rd", "client_secret_basic"),
        ("p", "client_secret_post"),
    ):
        issuer.secret, issuer.auth_methods = secret, [auth_method]
        async with browser(create_app(app, trusting(issuer))) as client:
            assert (await client.get(await sign_in_at_provider(client))).headers["location"] == "/jobs"
    assert "p:ss" not in repr(OidcClient("c", "p:ss w%rd"))


async def test_a_code_works_once_and_in_its_own_browser_only(
    app: Duly, issuer: LocalIssuer, member: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = create_app(app, trusting(issuer))
    async with browser(api) as client, browser(api) as other:
        mine = await sign_in_at_provider(client)
        cookie = client.cookies["__Host-duly-way"]
        theirs = await sign_in_at_provider(other)
        refused = [
            await browser(api).get(mine),
            await other.get(mine),
            await client.get(theirs),
            await client.get(re.sub("state=[^&]*", "state=", mine)),
        ]
        assert {response.status_code for response in refused} == {400}
        assert not [one for one in refused if "__Host-duly=" in one.headers.get("set-cookie", "")]
        assert issuer.exchanges == [], "no code is exchanged for a sign-in that did not start in this browser"
        client.cookies.set("__Host-duly-way", cookie, "duly.test")
        foreign = re.sub("iss=[^&]*", "iss=https://evil.example", mine)
        assert (await client.get(foreign)).status_code == 400, "another issuer"
        client.cookies.set("__Host-duly-way", cookie, "duly.test")
        assert (await client.get(mine)).status_code == 303
        assert "__Host-duly-way" not in client.cookies
        assert (await client.get(mine)).status_code == 400, "the cookie works once"
        client.cookies.set("__Host-duly-way", cookie, "duly.test")
        assert (await client.get(mine)).status_code == 503, "the code works once"
        late = await sign_in_at_provider(client)
        started = sign_in.time.time()
        monkeypatch.setattr(sign_in.time, "time", lambda: started + 700)
        assert (await client.get(late)).status_code == 400, "the sign-in has expired"


INVALID_CLAIMS: list[dict[str, Any]] = [
    {"nonce": "another"},
    {"nonce": None},
    {"aud": "duly"},
    {"aud": [CLIENT, "other"], "azp": "other"},
    {"iss": "http://127.0.0.1:1"},
    {"exp": 1},
    {"iat": 2**33},
    {"org_id": None},
    {"org_id": "not-a-uuid"},
    {"sub": None},
    {"ops": "true", "org_id": None},
]


async def test_an_id_token_of_another_sign_in_is_refused(
    app: Duly, issuer: LocalIssuer, member: str, sql: psycopg.Connection
) -> None:
    valid_claims = issuer.person
    async with browser(create_app(app, trusting(issuer))) as client:
        for invalid in INVALID_CLAIMS:
            issuer.person = {**valid_claims, **invalid}
            back = await client.get(await sign_in_at_provider(client))
            assert (back.status_code, "could not be verified" in back.text) == (403, True), invalid
            assert "__Host-duly" not in client.cookies
    assert sql.execute("select count(*) from duly.sessions").fetchone() == (0,)


async def test_a_small_clock_skew_is_tolerated(app: Duly, issuer: LocalIssuer, member: str) -> None:
    now = datetime.now(UTC).timestamp()
    issuer.person |= {"exp": now - 20, "iat": now + 20, "nbf": now + 20}
    async with browser(create_app(app, trusting(issuer))) as client:
        assert (await client.get(await sign_in_at_provider(client))).status_code == 303


async def test_errors_of_the_provider_are_explained_on_a_page(
    app: Duly, org: uuid.UUID, issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with browser(create_app(app, trusting(issuer))) as client:
        issuer.error = {"error": "access_denied", "error_description": "<b>no</b>"}
        response = await client.get(await sign_in_at_provider(client))
        assert (response.status_code, "denied the sign-in" in response.text) == (403, True)
        assert "&lt;b&gt;no" in response.text
        assert 'href="/login?next=%2Fjobs"' in response.text
        assert "default-src 'none'" in response.headers["content-security-policy"]
        issuer.error = {"error": "server_error"}
        response = await client.get(await sign_in_at_provider(client), headers={"accept-language": "de"})
        assert "Anmeldedienst hat einen Fehler gemeldet" in response.text
        made_up = await client.get("/login/back?error=x&error_description=call+0900&state=x")
        assert (made_up.status_code, "call 0900" in made_up.text) == (400, False)
        issuer.error = None
        issuer.person = {"sub": "unknown <i>", "org_id": str(org)}
        response = await client.get(await sign_in_at_provider(client))
        assert (response.status_code, "You are not a member of any org." in response.text) == (403, True)
        assert "unknown &lt;i&gt;" in response.text
        monkeypatch.setattr(provider, "_CACHE_TTL", -1.0)
        issuer.down = True
        assert (await client.get("/login/start")).status_code == 303, (
            "the cached discovery document is used while the provider is down"
        )
    async with browser(create_app(app, trusting(issuer))) as client:
        response = await client.get("/login/start")
        assert (response.status_code, "Your identity provider is unreachable." in response.text) == (
            503,
            True,
        )


async def test_sign_in_redirects_to_own_paths_only(app: Duly, issuer: LocalIssuer, member: str) -> None:
    async with browser(create_app(app, trusting(issuer))) as client:
        for evil in ("//evil.example", "/\\evil.example", "https://evil.example", "/\t/evil.example", "x"):
            assert (await client.get(await sign_in_at_provider(client, evil))).headers[
                "location"
            ] == "/submit"


async def test_the_redirect_uri_follows_the_mount_path_and_the_public_url(
    app: Duly, issuer: LocalIssuer, member: str
) -> None:
    outer = FastAPI()
    outer.mount("/tools/duly", create_app(app, trusting(issuer)))
    async with browser(outer, f"{HOME}/tools/duly/") as client:
        await client.get("login/start?next=/jobs")
        back = await client.get(await authorize(client, issuer, "login/start?next=/jobs"))
        assert back.headers["location"] == "/tools/duly/jobs"
    behind = create_app(app, trusting(issuer, public_url="https://duly.test/at"))
    async with browser(behind, "http://10.0.0.1") as client:
        redirect = await client.get("/login/start")
        query = parse_qs(urlsplit(redirect.headers["location"]).query)
        assert query["redirect_uri"] == ["https://duly.test/at/login/back"]
        assert "__Host-duly-way" in redirect.headers["set-cookie"]


async def authorize(client: httpx.AsyncClient, issuer: LocalIssuer, start: str) -> str:
    redirect = await client.get(start)
    return issuer.redirect(
        {k: v[0] for k, v in parse_qs(urlsplit(redirect.headers["location"]).query).items()}
    )


async def test_sign_in_is_offered_only_where_it_is_configured_and_secure(
    app: Duly, issuer: LocalIssuer
) -> None:
    async with browser(create_app(app, HttpOptions())) as client:
        assert 'id="sso"' not in (await client.get("/login")).text
        codes = [(await client.get(path)).status_code for path in ("/login/start", "/login/back?state=x")]
        assert codes == [404, 404]
    async with browser(create_app(app, trusting(issuer)), "http://duly.test") as client:
        assert "HTTPS required" in (await client.get("/login/start")).text
        assert not client.cookies
    with pytest.raises(ConfigurationError, match="issuer"):
        HttpOptions(sign_in=OidcClient(CLIENT))


async def test_repeated_failed_sign_ins_are_throttled(
    app: Duly, issuer: LocalIssuer, member: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in_throttle, "SIGN_IN_FAILURES_PER_SECOND", 1e-9)
    monkeypatch.setattr(sign_in_throttle, "SIGN_IN_FAILURE_BURST", 2.0)
    issuer.person |= {"nonce": "x"}
    async with browser(create_app(app, trusting(issuer))) as client:
        responses = [await client.get(await sign_in_at_provider(client)) for _ in range(3)]
    assert [response.status_code for response in responses] == [403, 403, 429]
    assert int(responses[-1].headers["retry-after"]) >= 1
    assert len(issuer.exchanges) == 2


async def test_no_token_and_no_code_is_stored_or_logged(
    app: Duly, issuer: LocalIssuer, member: str, sql: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "duly")
    issuer.secret = "the-secret-of-the-client"
    async with browser(create_app(app, trusting(issuer))) as client:
        back = await sign_in_at_provider(client)
        assert (await client.get(back)).status_code == 303
        token = client.cookies["__Host-duly"]
        client.cookies.clear()
        assert (await client.get(back)).status_code == 400
    [code] = parse_qs(urlsplit(back).query)["code"]
    stored = str(sql.execute("select * from duly.sessions").fetchall())
    stored += str(sql.execute("select * from duly.audit_entries").fetchall())
    for secret in (code, token, issuer.secret, issuer.exchanges[0]["code_verifier"]):
        assert secret not in caplog.text
        assert secret not in stored
