"""Authentication with API keys and tokens; all invalid credentials get the same response."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx
import jwt
import pytest

from duly import Duly
from duly.features.members.service import Members
from duly.http.application import create_app
from duly.http.authentication import identity_provider as provider
from duly.http.authentication.jwt import Issuer
from duly.http.options import HttpOptions
from tests.http.conftest import ANNA, caller, key_of
from tests.http.issuer import LocalIssuer, issuing


@pytest.fixture
async def issuer() -> AsyncIterator[LocalIssuer]:
    async with issuing() as one:
        yield one


@pytest.fixture
async def anonymous(app: Duly, org: uuid.UUID, issuer: LocalIssuer) -> AsyncIterator[httpx.AsyncClient]:
    """A client without credentials of a service that trusts the issuer and caches no authentication."""
    trusted = Issuer(issuer.url, "duly", platform_claim="ops")
    api = create_app(app, HttpOptions(issuers=(trusted,), authentication_ttl=timedelta(0)))
    async with caller(api, None) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def test_a_member_has_the_scopes_of_the_current_role(
    app: Duly, org: uuid.UUID, anonymous: httpx.AsyncClient, issuer: LocalIssuer
) -> None:
    members, token = Members(app), issuer.token(org_id=str(org))
    assert (await anonymous.get("/v1/jobs", headers=bearer(token))).status_code == 401  # no member
    await members.set(org, "u1", "viewer", actor=ANNA, reason="hired")
    assert (await anonymous.get("/v1/jobs", headers=bearer(token))).status_code == 200
    body = {"job_type": "none", "payload": {}}
    assert (await anonymous.post("/v1/jobs", json=body, headers=bearer(token))).status_code == 403
    await members.set(org, "u1", "operator", actor=ANNA, reason="promoted")
    assert (await anonymous.post("/v1/jobs", json=body, headers=bearer(token))).status_code == 422
    await members.remove(org, "u1", actor=ANNA, reason="left")
    assert (await anonymous.get("/v1/jobs", headers=bearer(token))).status_code == 401


async def test_all_invalid_credentials_look_the_same(
    app: Duly, org: uuid.UUID, anonymous: httpx.AsyncClient, issuer: LocalIssuer
) -> None:
    await Members(app).set(org, "u1", "viewer", actor=ANNA, reason="hired")
    me = {"org_id": str(org)}
    good = issuer.token(**me)
    assert (await anonymous.get("/v1/jobs", headers=bearer(good))).status_code == 200
    head, body, signature = good.split(".")
    wrong = [
        issuer.token(**me, aud="other"),
        issuer.token(**me, iss="http://127.0.0.1:1"),
        issuer.token(**me, exp=1),
        issuer.token(**me, exp=None),
        issuer.token(**me, sub=None),
        issuer.token(org_id=None),
        issuer.token(org_id="not-a-uuid"),
        issuer.token(org_id=str(uuid.uuid4())),
        issuer.token(ops=True, aud="other"),
        f"{head}.{body}.{signature[:-4]}AAAA",
        f"{head}.{body}.",
        jwt.encode(
            {"iss": issuer.url, "aud": "duly", "sub": "u1", "exp": 2**33, **me}, None, algorithm="none"
        ),
        jwt.encode(
            {"iss": issuer.url, "aud": "duly", "sub": "u1", "exp": 2**33, **me}, "k" * 32, algorithm="HS256"
        ),
        "nonsense",
        "duly_live_" + "0" * 20 + "_" + "0" * 48,
        "",
    ]
    responses = [
        await anonymous.get("/v1/jobs", headers={**bearer(token), "x-request-id": "r"}) for token in wrong
    ]
    assert {response.status_code for response in responses} == {401}
    assert len({response.content for response in responses}) == 1
    assert responses[0].headers["www-authenticate"] == 'Bearer realm="duly"'
    without_credentials = await anonymous.get("/v1/jobs")
    assert (without_credentials.status_code, without_credentials.json()["code"]) == (401, "auth.required")


async def test_keys_of_an_issuer_are_cached_and_refreshed(
    app: Duly,
    org: uuid.UUID,
    anonymous: httpx.AsyncClient,
    issuer: LocalIssuer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await Members(app).set(org, "u1", "viewer", actor=ANNA, reason="hired")

    async def status_with_token() -> int:
        return (await anonymous.get("/v1/jobs", headers=bearer(issuer.token(org_id=str(org))))).status_code

    # Concurrent requests share one lookup.
    assert await asyncio.gather(*(status_with_token() for _ in range(5))) == [200] * 5
    assert issuer.discovery_requests == 1
    issuer.rotate("key-2")
    # Tokens with an unknown key do not refresh the cache at once.
    assert [await status_with_token() for _ in range(5)] == [401] * 5
    assert issuer.discovery_requests == 1
    monkeypatch.setattr(provider, "_RETRY_PAUSE", 0.0)
    assert await status_with_token() == 200
    issuer.down = True
    monkeypatch.setattr(provider, "_CACHE_TTL", 0.0)
    # Cached keys are used while the issuer is down.
    assert [await status_with_token() for _ in range(2)] == [200] * 2
    assert issuer.discovery_requests > 2


async def test_a_platform_token_cannot_read_the_jobs_of_an_org(
    anonymous: httpx.AsyncClient, issuer: LocalIssuer
) -> None:
    token = issuer.token(ops=True, org_id=None)
    assert (await anonymous.get("/v1/jobs", headers=bearer(token))).status_code == 403
    assert (
        await anonymous.get("/v1/jobs", headers=bearer(issuer.token(ops="true", org_id=None)))
    ).status_code == 401


async def test_a_revoked_key_works_for_a_few_seconds_at_most(app: Duly, org: uuid.UUID) -> None:
    text = await key_of(app, org)
    cached_api = create_app(app, HttpOptions())
    uncached_api = create_app(app, HttpOptions(authentication_ttl=timedelta(0)))
    async with caller(cached_api, text) as cached, caller(uncached_api, text) as uncached:
        assert (await cached.get("/v1/jobs")).status_code == 200
        await app.api_keys.revoke(org, text.split("_")[2], actor=ANNA, reason="lost")
        assert (await cached.get("/v1/jobs")).status_code == 200
        assert (await uncached.get("/v1/jobs")).status_code == 401
