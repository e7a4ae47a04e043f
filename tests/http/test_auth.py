"""Who may come in: keys and tokens; everybody else is told the same."""

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
async def door(app: Duly, org: uuid.UUID, issuer: LocalIssuer) -> AsyncIterator[httpx.AsyncClient]:
    """A service that trusts the issuer, and remembers nobody."""
    trusted = Issuer(issuer.url, "duly", platform_claim="ops")
    api = create_app(app, HttpOptions(issuers=(trusted,), authentication_ttl=timedelta(0)))
    async with caller(api, None) as client:
        yield client


def bearing(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def test_a_member_has_the_scopes_of_the_current_role(
    app: Duly, org: uuid.UUID, door: httpx.AsyncClient, issuer: LocalIssuer
) -> None:
    members, token = Members(app), issuer.token(org_id=str(org))
    assert (await door.get("/v1/jobs", headers=bearing(token))).status_code == 401  # no member
    await members.set(org, "u1", "viewer", actor=ANNA, reason="hired")
    assert (await door.get("/v1/jobs", headers=bearing(token))).status_code == 200
    body = {"job_type": "none", "payload": {}}
    assert (await door.post("/v1/jobs", json=body, headers=bearing(token))).status_code == 403
    await members.set(org, "u1", "operator", actor=ANNA, reason="promoted")
    assert (await door.post("/v1/jobs", json=body, headers=bearing(token))).status_code == 422
    await members.remove(org, "u1", actor=ANNA, reason="left")
    assert (await door.get("/v1/jobs", headers=bearing(token))).status_code == 401


async def test_all_invalid_credentials_look_the_same(
    app: Duly, org: uuid.UUID, door: httpx.AsyncClient, issuer: LocalIssuer
) -> None:
    await Members(app).set(org, "u1", "viewer", actor=ANNA, reason="hired")
    me = {"org_id": str(org)}
    good = issuer.token(**me)
    assert (await door.get("/v1/jobs", headers=bearing(good))).status_code == 200
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
    answers = [await door.get("/v1/jobs", headers={**bearing(token), "x-request-id": "r"}) for token in wrong]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1
    assert answers[0].headers["www-authenticate"] == 'Bearer realm="duly"'
    nobody = await door.get("/v1/jobs")
    assert (nobody.status_code, nobody.json()["code"]) == (401, "auth.required")


async def test_keys_of_an_issuer_are_cached_and_refreshed(
    app: Duly, org: uuid.UUID, door: httpx.AsyncClient, issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Members(app).set(org, "u1", "viewer", actor=ANNA, reason="hired")

    async def tried() -> int:
        return (await door.get("/v1/jobs", headers=bearing(issuer.token(org_id=str(org))))).status_code

    assert await asyncio.gather(*(tried() for _ in range(5))) == [200] * 5  # the first to come waits for all
    assert issuer.asked == 1
    issuer.rotate("key-2")
    assert [await tried() for _ in range(5)] == [401] * 5  # nobody makes us ask all the time
    assert issuer.asked == 1
    monkeypatch.setattr(provider, "_RETRY_PAUSE", 0.0)
    assert await tried() == 200
    issuer.down = True
    monkeypatch.setattr(provider, "_CACHE_TTL", 0.0)
    assert [await tried() for _ in range(2)] == [200] * 2  # what we have is good until it is replaced
    assert issuer.asked > 2


async def test_an_operator_of_the_installation_belongs_to_no_org(
    door: httpx.AsyncClient, issuer: LocalIssuer
) -> None:
    token = issuer.token(ops=True, org_id=None)
    assert (await door.get("/v1/jobs", headers=bearing(token))).status_code == 403
    assert (
        await door.get("/v1/jobs", headers=bearing(issuer.token(ops="true", org_id=None)))
    ).status_code == 401


async def test_a_revoked_key_works_for_a_few_seconds_at_most(app: Duly, org: uuid.UUID) -> None:
    text = await key_of(app, org)
    lasting = create_app(app, HttpOptions())
    strict = create_app(app, HttpOptions(authentication_ttl=timedelta(0)))
    async with caller(lasting, text) as remembers, caller(strict, text) as forgets:
        assert (await remembers.get("/v1/jobs")).status_code == 200
        await app.api_keys.revoke(org, text.split("_")[2], actor=ANNA, reason="lost")
        assert (await remembers.get("/v1/jobs")).status_code == 200
        assert (await forgets.get("/v1/jobs")).status_code == 401
