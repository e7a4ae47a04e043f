"""Middleware: request ids, safe headers, rate limits, error responses, mounting and OpenAPI."""

from __future__ import annotations

import logging
import re
import uuid
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from duly import Duly
from duly.core.errors import ConfigurationError
from duly.http.application import create_app
from duly.http.authentication.jwt import Issuer
from duly.http.options import HttpOptions
from duly.jobs.request_context import current_context
from tests.http.conftest import caller, key_of


@pytest.mark.parametrize("path", ["/v1/jobs", "/nothing", "/livez", "/v1/jobs/x"])
async def test_every_response_has_a_request_id_and_safe_headers(http: httpx.AsyncClient, path: str) -> None:
    response = await http.get(path, headers={"x-request-id": "mine-1"})
    assert response.headers["x-request-id"] == "mine-1"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "no-store"
    for harmful in ("a b", "x" * 101, "a\tb"):
        request_id = (await http.get(path, headers={"x-request-id": harmful})).headers["x-request-id"]
        assert request_id.startswith("req-")
    with_invalid_trace = await http.get(
        path, headers={"traceparent": "00-" + "0" * 32 + "-" + "1" * 16 + "-01"}
    )
    assert re.fullmatch("00-(?!0{32})[0-9a-f]{32}-[0-9a-f]{16}-01", with_invalid_trace.headers["traceparent"])


async def test_an_unknown_route_or_method_is_a_problem_response(http: httpx.AsyncClient) -> None:
    unknown_route, unknown_method = await http.get("/v2/jobs"), await http.put("/v1/jobs")
    assert (unknown_route.status_code, unknown_route.json()["code"]) == (404, "route.unknown")
    assert (unknown_method.status_code, unknown_method.json()["code"]) == (405, "method.not_allowed")
    assert unknown_method.headers["allow"] == "GET, POST"


class TestRates:
    """Each org has its own rate limit."""

    @pytest.fixture
    def options(self) -> HttpOptions:
        return HttpOptions(requests_per_second=0.001, burst=3)

    async def test_a_rate_limited_request_has_retry_after(
        self, http: httpx.AsyncClient, stranger: httpx.AsyncClient
    ) -> None:
        left = [(await http.get("/v1/jobs")).headers["ratelimit"].partition(";t=")[0] for _ in range(3)]
        assert left == ['"requests";r=2', '"requests";r=1', '"requests";r=0']
        refused = await http.get("/v1/jobs")
        assert (refused.status_code, refused.json()["code"]) == (429, "rate.exceeded")
        assert int(refused.headers["retry-after"]) > 900
        assert refused.headers["ratelimit-policy"].startswith('"requests";q=3')
        assert (await stranger.get("/v1/jobs")).status_code == 200


async def test_an_internal_error_reveals_its_request_id_only(
    app: Duly, org: uuid.UUID, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr("duly.features.jobs.service.Jobs.list", broken)
    caplog.set_level(logging.INFO)
    async with caller(create_app(app), await key_of(app, org)) as client:
        response = await client.get("/v1/jobs", headers={"x-request-id": "r-9"})
    assert (response.status_code, response.json()["code"], response.json()["request_id"]) == (
        500,
        "duly.error",
        "r-9",
    )
    assert "hunter2" not in response.text
    [line] = [record for record in caplog.records if record.exc_info]
    assert vars(line).items() >= {"request_id": "r-9", "org_id": str(org)}.items()
    [access] = [record for record in caplog.records if record.name == "duly.http.access"]
    assert vars(access).items() >= {"route": "/v1/jobs", "status": 500, "request_id": "r-9"}.items()


async def test_the_context_of_a_request_ends_with_it(http: httpx.AsyncClient, api: FastAPI) -> None:
    before = current_context()
    assert (await http.get("/v1/jobs")).status_code == 200
    assert current_context() == before


async def test_links_work_when_mounted_and_behind_a_public_url(app: Duly, org: uuid.UUID) -> None:
    @app.job("report.build")
    def build() -> None: ...

    outer = FastAPI()
    outer.mount("/duly", create_app(app))
    async with caller(outer, await key_of(app, org)) as client:
        response = await client.post("/duly/v1/jobs", json={"job_type": "report.build"})
        url = response.headers["location"]
        assert url.startswith("/duly/v1/jobs/")
        assert (await client.get(url)).json()["status_url"] == url
    public_api = create_app(app, HttpOptions(public_url="https://duly.example"))
    async with caller(public_api, await key_of(app, org)) as client:
        response = await client.post("/v1/jobs", json={"job_type": "report.build"})
        assert response.headers["location"].startswith("https://duly.example/v1/jobs/")


async def test_the_openapi_document_has_the_problems_of_every_route(http: httpx.AsyncClient) -> None:
    document = (await http.get("/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    public_paths = {"/livez", "/readyz", "/metrics"}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            documented = {int(status) for status in operation["responses"]}
            if path in public_paths or "/v1/" not in path:
                continue
            assert documented >= {400, 401, 403, 422, 429, 503}, path
            problem = operation["responses"]["401"]["content"]["application/problem+json"]["schema"]
            assert problem == {"$ref": "#/components/schemas/Problem"}
    assert "HTTPValidationError" not in document["components"]["schemas"]
    operations = [one for path in document["paths"].values() for one in path.values()]
    names = [one["operationId"] for one in operations]
    assert len(set(names)) == len(names)
    assert {"jobs.submit", "platform.pause_queue"} <= set(names)
    submit = document["paths"]["/v1/jobs"]["post"]
    assert submit["description"].endswith("Requires the scope `jobs:write`.")
    assert set(submit["responses"]["202"]["headers"]) == {"Location", "Retry-After", "Idempotency-Replayed"}
    cancel = document["paths"]["/v1/jobs/{job_id}/cancel"]["post"]
    assert "headers" not in cancel["responses"]["202"]  # no header is documented that is not sent


def test_invalid_options_are_refused() -> None:
    two = (Issuer("https://a.example", "duly"), Issuer("https://b.example", "duly"))
    for invalid in ({"issuers": two}, {"requests_per_second": 0.0}, {"burst": 0}):
        with pytest.raises(ConfigurationError):
            HttpOptions(**invalid)  # type: ignore[arg-type]


async def test_an_error_of_the_database_reveals_no_host(tmp_path: Path) -> None:
    app = Duly(
        database_url="postgresql://db.internal.invalid:1/secret", blobs_url=str(tmp_path), pool_timeout=0.2
    )
    async with caller(create_app(app), "duly_live_" + "0" * 20 + "_" + "0" * 48) as client:
        response = await client.get("/v1/jobs")
    assert (response.status_code, response.json()["code"]) == (503, "store.unavailable")
    assert "internal" not in response.text
