"""No response, header, log line or metric of any route reveals data of another org (I16)."""

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
    PARAMETER,
    REFERENCES,
    WITHOUT_ORG,
    WITHOUT_REASON,
    Route,
    identifying_texts,
    lookalike,
    mentions,
    reference_fields,
    routes,
    rows_of,
)
from tests.http.requests import JSON
from tests.http.sample_org import SampleOrg, create_sample_org, declare

VARYING = {"x-request-id", "date", "traceparent", "ratelimit", "ratelimit-policy"}
TIMES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
CLIENT_LOGGERS = re.compile("httpx|httpcore|asyncio")
"""Loggers of the client, not of the service."""


class ProbeRequest(NamedTuple):
    """A request, and the ids that it contains."""

    url: str
    body: str | None
    ids: set[str]


class Prober:
    """A client of one org that requests resources of another and checks everything it receives."""

    def __init__(self, http: httpx.AsyncClient, secrets: set[str], caplog: pytest.LogCaptureFixture) -> None:
        self._http = http
        self._secrets = secrets
        self._caplog = caplog

    async def send(self, method: str, request: ProbeRequest, **headers: str) -> httpx.Response:
        """Send a request; check that response and logs reveal no text of the other org that was not sent."""
        self._caplog.clear()
        response = await self._http.request(
            method, request.url, content=request.body, headers={**JSON, **headers}
        )
        logged = [str(vars(item)) for item in self._caplog.records if not CLIENT_LOGGERS.match(item.name)]
        outputs = [response.text, str(response.headers), *logged]
        for secret in self._secrets:
            if secret not in f"{request} {headers}":
                assert not [output for output in outputs if secret in output], (method, request, secret)
        return response

    async def compare(self, method: str, theirs: ProbeRequest, unknown: ProbeRequest, **headers: str) -> int:
        """Check that a foreign and an unknown resource get the same response; return its status."""
        appearances = [
            appearance(await self.send(method, request, **headers), request.ids)
            for request in (theirs, unknown)
        ]
        assert appearances[0] == appearances[1], (method, theirs, unknown)
        return appearances[0][0]


def appearance(response: httpx.Response, ids: set[str]) -> tuple[int, dict[str, str], str]:
    text = TIMES.sub("T", response.text.replace(response.headers["x-request-id"], "R"))
    headers = {name: value for name, value in response.headers.items() if name not in VARYING}
    for item in ids:
        text = text.replace(item, "I")
        headers = {name: value.replace(item, "I") for name, value in headers.items()}
    return response.status_code, headers, text


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
    return Prober(caller(api, mine.key.text), identifying_texts(theirs), caplog)


async def test_resources_of_another_org_look_unknown(
    api: FastAPI, prober: Prober, theirs: SampleOrg, sql: psycopg.Connection
) -> None:
    before, chance = rows_of(sql, theirs), random.Random(16)
    probed_routes = [
        item for item in routes(api) if PARAMETER.search(item.path) and not WITHOUT_ORG.match(item.path)
    ]
    assert len(probed_routes) > 30
    # PUT comes last: it adds the user to the own org, where the id is known from then on.
    for route in sorted(probed_routes, key=lambda item: item.method == "PUT"):
        for ids in route.ids(theirs):
            await _probe(prober, route, ids, {name: lookalike(text, chance) for name, text in ids.items()})
    assert rows_of(sql, theirs) == before, "rows of the other org have changed"


async def _probe(prober: Prober, route: Route, ids: dict[str, str], unknown: dict[str, str]) -> None:
    body = BODIES.get((route.method, route.path), {"reason": "r"})
    query = "?reason=r" if route.method == "DELETE" and route.path not in WITHOUT_REASON else ""
    pair = [
        ProbeRequest(
            route.at(item) + query, json.dumps(body) if route.method != "GET" else None, set(item.values())
        )
        for item in (ids, unknown)
    ]
    expected = 403 if route.path.startswith("/v1/platform/") else 200 if route.method == "PUT" else 404
    for accept in ("*/*", "text/event-stream"):
        status = await prober.compare(route.method, *pair, accept=accept)
        assert status == expected, (route, "a request refused for another reason proves nothing")


async def test_references_to_resources_of_another_org_look_unknown(
    app: Duly, api: FastAPI, prober: Prober, mine: SampleOrg, theirs: SampleOrg, sql: psycopg.Connection
) -> None:
    project = await Orgs(app).create_project(theirs.org_id, None, "p", actor=ANNA, reason="r")
    before, chance = rows_of(sql, theirs), random.Random(16)
    assert reference_fields(api.openapi()) <= REFERENCES, "add a mention for each new field"
    for mention in mentions(theirs, str(project.project_id), mine):
        pair = [
            ProbeRequest(
                mention.url.replace("{}", item), mention.body and mention.body.replace("{}", item), {item}
            )
            for item in (str(mention.resource_id), lookalike(str(mention.resource_id), chance))
        ]
        status = await prober.compare(mention.method, *pair)
        assert status in (200, 201, 403, 404, 422), mention
    assert rows_of(sql, theirs) == before, "rows of the other org have changed"


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
    cursors: dict[str, Any] = {}
    for path in _paged(api.openapi()):
        page = (await other.get(path, params={"limit": 1})).json()
        cursors[path] = page.get("after")
    assert len([cursor for cursor in cursors.values() if cursor]) > 5, "most lists have more than one page"
    before = rows_of(sql, theirs)
    for path, cursor in cursors.items():
        if cursor is not None:
            response = await prober.send("GET", ProbeRequest(f"{path}?after={cursor}", None, {cursor}))
            assert response.status_code in (200, 422), path
    await prober.send("GET", ProbeRequest(f"/jobs?after={cursors['/v1/jobs']}", None, set()))
    await prober.send("GET", ProbeRequest("/v1/feed", None, set()), **{"last-event-id": cursors["/v1/feed"]})
    kind = {"reason": "r", "per_second": 1, "fingerprint": letter["fingerprint"]}
    await prober.send("GET", ProbeRequest(f"/v1/dead-letters?fingerprint={kind['fingerprint']}", None, set()))
    await prober.send("POST", ProbeRequest("/v1/dead-letters/replay", json.dumps(kind), set()))
    del kind["per_second"]
    await prober.send("POST", ProbeRequest("/v1/dead-letters/discard", json.dumps(kind), set()))
    assert rows_of(sql, theirs) == before


def _paged(document: dict[str, Any]) -> list[str]:
    """Return the paginated routes of an org."""
    return [
        path
        for path, operations in document["paths"].items()
        if "{" not in path and not path.startswith("/v1/platform/")
        if "after" in [item["name"] for item in operations.get("get", {}).get("parameters", [])]
    ]


async def test_neither_cookies_nor_metrics_reveal_other_orgs(
    api: FastAPI, prober: Prober, mine: SampleOrg, theirs: SampleOrg
) -> None:
    async with caller(api, theirs.key.text) as other:
        other.base_url = httpx.URL("http://localhost")
        opened = await other.post("/session", json={"credential": theirs.key.text})
        assert (opened.status_code, (await other.get("/v1/org")).json()["name"]) == (201, theirs.name)
        cookie = "; ".join(f"{name}={value}" for name, value in opened.cookies.items())
    both = await prober.send("GET", ProbeRequest("http://localhost/v1/org", None, set()), cookie=cookie)
    assert both.json()["org_id"] == str(mine.org_id), "a credential in the headers wins"
    metrics = (await prober.send("GET", ProbeRequest("/metrics", None, set()))).text
    assert "job_reconciliations_total" in metrics
    assert not [secret for secret in identifying_texts(mine) if secret in metrics]
