"""Nothing of an org is told to another: by no answer, header, log or metric, on no route (I16)."""

from __future__ import annotations

import json
import logging
import random
import re
from typing import Any, NamedTuple

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from duly import Duly
from duly.features.orgs.service import Orgs
from duly.http.application import create_app
from duly.http.options import HttpOptions
from tests.http.conftest import ANNA, caller
from tests.http.foreign_org import (
    BODIES,
    NAMED,
    OF_NOBODY,
    PARAMETER,
    WITHOUT_REASON,
    Route,
    belongings,
    lookalike,
    mentions,
    named,
    routes,
    told_apart,
)
from tests.http.requests import JSON
from tests.http.sample_org import SampleOrg, create_sample_org, declare

VARYING = {"x-request-id", "date", "traceparent", "ratelimit", "ratelimit-policy"}
TIMES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
OF_THE_ASKER = re.compile("httpx|httpcore|asyncio")
"""Loggers that do not belong to the service."""


class Asked(NamedTuple):
    """A request, and the ids that it says."""

    url: str
    body: str | None
    ids: set[str]


class Prober:
    """Somebody of one org who asks about what another has, and listens well."""

    def __init__(self, http: httpx.AsyncClient, secrets: set[str], caplog: pytest.LogCaptureFixture) -> None:
        self._http = http
        self._secrets = secrets
        self._caplog = caplog

    async def ask(self, method: str, asked: Asked, **headers: str) -> httpx.Response:
        """The answer. It has nothing in it that is theirs, but for what was said in the request."""
        self._caplog.clear()
        answer = await self._http.request(method, asked.url, content=asked.body, headers={**JSON, **headers})
        logged = [str(vars(one)) for one in self._caplog.records if not OF_THE_ASKER.match(one.name)]
        told = [answer.text, str(answer.headers), *logged]
        for secret in self._secrets:
            if secret not in f"{asked} {headers}":
                assert not [place for place in told if secret in place], (method, asked, secret)
        return answer

    async def compare(self, method: str, theirs: Asked, nobodys: Asked, **headers: str) -> int:
        """Ask for what is theirs and for what is nobody's; both must look the same. The status of both."""
        looks = [_look(await self.ask(method, asked, **headers), asked.ids) for asked in (theirs, nobodys)]
        assert looks[0] == looks[1], (method, theirs, nobodys)
        return looks[0][0]


def _look(answer: httpx.Response, ids: set[str]) -> tuple[int, dict[str, str], str]:
    text = TIMES.sub("T", answer.text.replace(answer.headers["x-request-id"], "R"))
    headers = {name: value for name, value in answer.headers.items() if name not in VARYING}
    for one in ids:
        text = text.replace(one, "I")
        headers = {name: value.replace(one, "I") for name, value in headers.items()}
    return answer.status_code, headers, text


@pytest.fixture
def api(app: Duly) -> FastAPI:
    declare(app)
    return create_app(app, HttpOptions(requests_per_second=1e9, burst=10**9))


@pytest.fixture
async def mine(app: Duly, api: FastAPI) -> SampleOrg:
    return await create_sample_org(app, "Acme")


@pytest.fixture
async def theirs(app: Duly, api: FastAPI) -> SampleOrg:
    return await create_sample_org(app, "Zyxel")


@pytest.fixture
def prober(api: FastAPI, mine: SampleOrg, theirs: SampleOrg, caplog: pytest.LogCaptureFixture) -> Prober:
    caplog.set_level(logging.DEBUG)
    return Prober(caller(api, mine.key.text), told_apart(theirs), caplog)


async def test_resources_of_another_org_look_unknown(
    api: FastAPI, prober: Prober, theirs: SampleOrg, sql: psycopg.Connection
) -> None:
    before, chance = belongings(sql, theirs), random.Random(16)
    found = [one for one in routes(api) if PARAMETER.search(one.path) and not OF_NOBODY.match(one.path)]
    assert len(found) > 30
    # Whoever was made a member by us is no stranger any more.
    for route in sorted(found, key=lambda one: one.method == "PUT"):
        for ids in route.ids(theirs):
            await _probe(prober, route, ids, {name: lookalike(text, chance) for name, text in ids.items()})
    assert belongings(sql, theirs) == before, "and none of it has changed"


async def _probe(prober: Prober, route: Route, ids: dict[str, str], nobodys: dict[str, str]) -> None:
    body = BODIES.get((route.method, route.path), {"reason": "r"})
    query = "?reason=r" if route.method == "DELETE" and route.path not in WITHOUT_REASON else ""
    pair = [
        Asked(route.at(one) + query, json.dumps(body) if route.method != "GET" else None, set(one.values()))
        for one in (ids, nobodys)
    ]
    expected = 403 if route.path.startswith("/v1/platform/") else 200 if route.method == "PUT" else 404
    for accept in ("*/*", "text/event-stream"):
        status = await prober.compare(route.method, *pair, accept=accept)
        assert status == expected, (route, "what is refused for another reason probes nothing")


async def test_requests_cannot_refer_to_resources_of_another_org(
    app: Duly, api: FastAPI, prober: Prober, mine: SampleOrg, theirs: SampleOrg, sql: psycopg.Connection
) -> None:
    project = await Orgs(app).create_project(theirs.org_id, None, "p", actor=ANNA, reason="r")
    before, chance = belongings(sql, theirs), random.Random(16)
    assert named(api.openapi()) <= NAMED, "say how the others are probed"
    for mention in mentions(theirs, str(project.project_id), mine):
        pair = [
            Asked(mention.url.replace("{}", one), mention.body and mention.body.replace("{}", one), {one})
            for one in (str(mention.given), lookalike(str(mention.given), chance))
        ]
        status = await prober.compare(mention.method, *pair)
        assert status in (200, 201, 403, 404, 422), mention
    assert belongings(sql, theirs) == before, "and none of it has changed"


async def test_cursors_and_filters_of_another_org_return_own_data(
    api: FastAPI, prober: Prober, mine: SampleOrg, theirs: SampleOrg, sql: psycopg.Connection
) -> None:
    other = caller(api, theirs.key.text)
    for method, path, body in (
        ("PUT", "/v1/members/second", {"role": "viewer"}),
        ("POST", "/v1/keys", {"name": "second", "scopes": ["jobs:read"]}),
        ("POST", "/v1/schedules", {"name": "second", "cron": "0 3 * * *", "job_type": "report.build"}),
    ):
        assert (await other.request(method, path, json={**body, "reason": "r"})).status_code < 300
    letter = (await other.get(f"/v1/dead-letters/{theirs.dead}")).json()
    places: dict[str, Any] = {}
    for path in _paged(api.openapi()):
        page = (await other.get(path, params={"limit": 1})).json()
        places[path] = page.get("after")
    assert len([place for place in places.values() if place]) > 5, "there is more than a page of most"
    before = belongings(sql, theirs)
    for path, place in places.items():
        if place is not None:
            answer = await prober.ask("GET", Asked(f"{path}?after={place}", None, {place}))
            assert answer.status_code in (200, 422), path
    await prober.ask("GET", Asked(f"/jobs?after={places['/v1/jobs']}", None, set()))
    await prober.ask("GET", Asked("/v1/feed", None, set()), **{"last-event-id": places["/v1/feed"]})
    kind = {"reason": "r", "per_second": 1, "fingerprint": letter["fingerprint"]}
    await prober.ask("GET", Asked(f"/v1/dead-letters?fingerprint={kind['fingerprint']}", None, set()))
    await prober.ask("POST", Asked("/v1/dead-letters/replay", json.dumps(kind), set()))
    del kind["per_second"]
    await prober.ask("POST", Asked("/v1/dead-letters/discard", json.dumps(kind), set()))
    assert belongings(sql, theirs) == before


def _paged(document: dict[str, Any]) -> list[str]:
    """What an org may ask for page by page."""
    return [
        path
        for path, operations in document["paths"].items()
        if "{" not in path and not path.startswith("/v1/platform/")
        if "after" in [one["name"] for one in operations.get("get", {}).get("parameters", [])]
    ]


async def test_neither_cookies_nor_metrics_reveal_other_orgs(
    api: FastAPI, prober: Prober, mine: SampleOrg, theirs: SampleOrg
) -> None:
    async with caller(api, theirs.key.text) as other:
        other.base_url = httpx.URL("http://localhost")
        opened = await other.post("/session", json={"credential": theirs.key.text})
        assert (opened.status_code, (await other.get("/v1/org")).json()["name"]) == (201, theirs.name)
        cookie = "; ".join(f"{name}={value}" for name, value in opened.cookies.items())
    both = await prober.ask("GET", Asked("http://localhost/v1/org", None, set()), cookie=cookie)
    assert both.json()["org_id"] == str(mine.org_id), "a credential in the headers wins"
    metrics = (await prober.ask("GET", Asked("/metrics", None, set()))).text
    assert "job_reconciliations_total" in metrics
    assert not [secret for secret in told_apart(mine) if secret in metrics]
