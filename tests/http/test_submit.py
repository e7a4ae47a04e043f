"""Submitting jobs: links, idempotency keys, bulk requests, and errors that name their field."""

from __future__ import annotations

import uuid

import httpx
import pytest
from fastapi import FastAPI

from duly import Duly
from duly.core.principal import Principal
from duly.http.options import HttpOptions
from tests.http.conftest import caller, key_of


@pytest.fixture(autouse=True)
def _declared(app: Duly) -> None:
    @app.job("report.build")
    def build(region: str, year: int = 2026) -> int:
        return year


async def test_a_job_is_accepted_with_its_links(http: httpx.AsyncClient, app: Duly, org: uuid.UUID) -> None:
    trace = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"
    body = {"job_type": "report.build", "payload": {"region": "DE"}, "subject_id": "order-7"}
    response = await http.post("/v1/jobs", json=body, headers={"x-request-id": "r-1", "traceparent": trace})
    assert response.status_code == 202
    accepted = response.json()
    url = f"/v1/jobs/{accepted['job_id']}"
    assert accepted == {
        "job_id": accepted["job_id"],
        "subject_id": "order-7",
        "status": "queued",
        "status_url": url,
        "events_url": f"{url}/events",
    }
    assert (response.headers["location"], response.headers["retry-after"]) == (url, "1")
    assert (response.headers["x-request-id"], response.headers["traceparent"]) == ("r-1", trace)
    job = await app.handle(accepted["job_id"], org_id=org).status()
    assert (job.request_id, job.correlation_id, job.traceparent, job.subject_id) == (
        "r-1",
        "r-1",
        trace,
        "order-7",
    )
    assert job.actor_type == "api_key"


async def test_an_idempotency_key_creates_one_job_and_replays_are_marked(http: httpx.AsyncClient) -> None:
    async def submit(region: str, **more: str) -> httpx.Response:
        body = {"job_type": "report.build", "payload": {"region": region}, **more}
        return await http.post("/v1/jobs", json=body, headers={"idempotency-key": "k-1"})

    first, again = await submit("DE"), await submit("DE")
    assert (first.json(), first.status_code) == (again.json(), again.status_code)
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    # A default that is spelled out is the same request.
    body = {"job_type": "report.build", "payload": {"year": 2026, "region": "DE"}}
    assert (await http.post("/v1/jobs", json=body, headers={"idempotency-key": "k-1"})).status_code == 202
    for other in (await submit("FR"), await submit("DE", subject_id="s")):
        assert (other.status_code, other.json()["code"]) == (422, "idempotency.reused")


async def test_joining_a_run_does_not_use_its_idempotency_key(http: httpx.AsyncClient) -> None:
    async def submit(key: str, region: str) -> httpx.Response:
        body = {"job_type": "report.build", "payload": {"region": region}, "run_identity": "one"}
        return await http.post("/v1/jobs", json=body, headers={"idempotency-key": key})

    first, joined = await submit("k-1", "DE"), await submit("k-2", "FR")
    assert (joined.status_code, joined.json()["job_id"]) == (202, first.json()["job_id"])


async def test_an_idempotency_key_of_an_open_transaction_is_in_flight(
    http: httpx.AsyncClient, app: Duly, acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duly.features.job_submission.routes._ENQUEUE_TIMEOUT", 0.3)
    build = app.registry.get("report.build")
    async with app.tenant_session(acting) as conn:
        await build.options(idempotency_key="k", conn=conn).enqueue("DE")
        body = {"job_type": "report.build", "payload": {"region": "DE"}}
        held = await http.post("/v1/jobs", json=body, headers={"idempotency-key": "k"})
    assert (held.status_code, held.json()["code"]) == (409, "idempotency.in_flight")
    assert (await http.post("/v1/jobs", json=body, headers={"idempotency-key": "k"})).status_code == 202


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        ({"payload": {"region": "DE"}}, 422, "request.invalid", "job_type"),
        ({"job_type": "no.such", "payload": {}}, 422, "job_type.unknown", "job_type"),
        ({"job_type": "report.build", "payload": {}}, 422, "contract.invalid", "payload.region"),
        (
            {"job_type": "report.build", "payload": {"region": "DE"}, "org_id": "x"},
            422,
            "request.invalid",
            "org_id",
        ),
        ({"job_type": "report.build", "payload": {"region": "\0"}}, 422, "payload.refused", "payload.region"),
        (
            {"job_type": "report.build", "payload": {"region": "DE"}, "project_id": str(uuid.UUID(int=7))},
            422,
            "project.unknown",
            "project_id",
        ),
    ],
)
async def test_invalid_requests_name_their_fields(
    http: httpx.AsyncClient, body: dict[str, object], status: int, code: str, field: str
) -> None:
    response = await http.post("/v1/jobs", json=body)
    problem = response.json()
    assert (response.status_code, problem["code"]) == (status, code), problem
    assert problem["errors"][0]["field"] == field, problem
    assert response.headers["content-type"] == "application/problem+json"
    assert problem["type"] == f"urn:duly:problem:{code}"
    assert problem["request_id"] == response.headers["x-request-id"]
    assert (await http.get("/v1/jobs")).json()["jobs"] == []


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b'{"job_type": "a", "job_type": "b"}', "application/json", 400, "payload.refused"),
        (b'{"job_type": NaN}', "application/json", 400, "payload.refused"),
        (b'{"job_type"', "application/json", 400, "payload.refused"),
        (b"[" * 100_000, "application/json", 400, "payload.refused"),
        (b"\xff", "application/json", 400, "payload.refused"),
        (b"{}", "text/plain", 415, "media_type.unsupported"),
        (b"", "application/json", 422, "request.invalid"),
        (b'{"job_type":"' + b"x" * 3_000_000 + b'"}', "application/json", 413, "request.too_large"),
    ],
)
async def test_malformed_oversized_and_mistyped_bodies_are_refused(
    http: httpx.AsyncClient, content: bytes, kind: str, status: int, code: str
) -> None:
    response = await http.post("/v1/jobs", content=content, headers={"content-type": kind})
    assert (response.status_code, response.json()["code"]) == (status, code)

    async def pieces() -> object:  # without a content-length to check first
        yield content

    streamed = await http.post("/v1/jobs", content=pieces(), headers={"content-type": kind})  # type: ignore[arg-type]
    assert (streamed.status_code, streamed.json()["code"]) == (status, code)


async def test_a_bulk_request_is_accepted_as_a_whole_or_not_at_all(
    http: httpx.AsyncClient, api: FastAPI
) -> None:
    good = {"job_type": "report.build", "payload": {"region": "DE"}}
    bad = {"job_type": "report.build", "payload": {"region": 7}}
    refused = await http.post("/v1/jobs/bulk", json={"jobs": [good, bad]})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "jobs.1.payload.region")
    assert (await http.get("/v1/jobs")).json()["jobs"] == []
    response = await http.post(
        "/v1/jobs/bulk", json={"jobs": [{**good, "subject_id": str(n)} for n in range(20)]}
    )
    accepted = response.json()["jobs"]
    assert (response.status_code, [one["subject_id"] for one in accepted]) == (
        202,
        [str(n) for n in range(20)],
    )
    listed = (await http.get("/v1/jobs")).json()["jobs"]
    assert {job["job_id"] for job in listed} == {one["job_id"] for one in accepted}
    many = await http.post("/v1/jobs/bulk", json={"jobs": [good] * 1001})
    assert (many.status_code, many.json()["errors"][0]["field"]) == (422, "jobs")


async def test_idempotency_keys_of_a_bulk_request_are_as_strict_as_a_single_one(
    http: httpx.AsyncClient,
) -> None:
    async def submit(*items: tuple[str, str]) -> httpx.Response:
        jobs = [
            {"job_type": "report.build", "payload": {"region": region}, "idempotency_key": key}
            for key, region in items
        ]
        return await http.post("/v1/jobs/bulk", json={"jobs": jobs})

    first, again = await submit(("k-1", "DE"), ("k-2", "FR")), await submit(("k-1", "DE"), ("k-3", "IT"))
    assert [one["replayed"] for one in first.json()["jobs"]] == [False, False]
    assert [one["replayed"] for one in again.json()["jobs"]] == [True, False]
    for other in (await submit(("k-4", "ES"), ("k-1", "FR")), await submit(("k-5", "ES"), ("k-5", "FR"))):
        problem = other.json()
        assert (other.status_code, problem["code"]) == (422, "idempotency.reused")
        assert problem["errors"][0]["field"] == "jobs.1.idempotency_key"
    assert len((await http.get("/v1/jobs")).json()["jobs"]) == 3  # all or none


async def test_an_idempotency_key_that_joined_a_run_is_bound_to_it(http: httpx.AsyncClient) -> None:
    async def submit(key: str, region: str, **more: str) -> httpx.Response:
        body = {"job_type": "report.build", "payload": {"region": region}, **more}
        return await http.post("/v1/jobs", json=body, headers={"idempotency-key": key})

    first, joined = (
        await submit("k-1", "DE", run_identity="one"),
        await submit("k-2", "DE", run_identity="one"),
    )
    assert first.json()["job_id"] == joined.json()["job_id"]
    assert (await submit("k-2", "FR")).json()["code"] == "idempotency.reused"


async def test_the_errors_of_many_unknown_fields_are_truncated(http: httpx.AsyncClient) -> None:
    many = await http.post("/v1/jobs", json={f"f{number}": 1 for number in range(90)})
    assert (many.status_code, len(many.json()["errors"])) == (422, 20)
    first = many.json()["errors"][0]
    assert (first["message"], bool(first["fix"])) == ("missing", True)
    for flood in ({f"f{number}": 1 for number in range(101)}, {"jobs": [{"a": 1, "b": 2}] * 10_001}):
        refused = await http.post("/v1/jobs/bulk", json=flood)
        assert (refused.status_code, refused.json()["code"]) == (400, "payload.refused")
    surrogate_keys = await http.post(
        "/v1/jobs", content=b'{"\\ud800":1,"\\ud800":2}', headers={"content-type": "application/json"}
    )
    assert (surrogate_keys.status_code, surrogate_keys.json()["code"]) == (400, "payload.refused")


async def test_a_key_without_the_write_scope_cannot_submit(app: Duly, api: FastAPI, org: uuid.UUID) -> None:
    async with caller(api, await key_of(app, org, "jobs:read")) as reader:
        response = await reader.post(
            "/v1/jobs", json={"job_type": "report.build", "payload": {"region": "DE"}}
        )
        assert (response.status_code, response.json()["code"]) == (403, "auth.forbidden")
        assert (await reader.get("/v1/jobs")).status_code == 200


async def _only_orders(principal: Principal, subject_id: str, action: str) -> bool:
    return subject_id.startswith("order-") or (action == "submit" and subject_id == "once")


class TestSubjects:
    """Jobs of invisible subjects look unknown."""

    @pytest.fixture
    def options(self) -> HttpOptions:
        return HttpOptions(may=_only_orders)

    async def test_jobs_about_invisible_subjects_look_unknown(self, http: httpx.AsyncClient) -> None:
        async def submit(subject: str) -> httpx.Response:
            body = {"job_type": "report.build", "payload": {"region": "DE"}, "subject_id": subject}
            return await http.post("/v1/jobs", json=body)

        visible, hidden, refused = await submit("order-1"), await submit("once"), await submit("salary-9")
        assert (refused.status_code, refused.json()["code"]) == (403, "auth.forbidden")
        assert (await http.get(visible.json()["status_url"])).status_code == 200
        unknown = await http.get(f"/v1/jobs/{uuid.uuid4()}")
        job = hidden.json()["job_id"]
        for method, path in (("GET", ""), ("GET", "/events"), ("GET", "/result"), ("POST", "/cancel")):
            body = {"reason": "r"} if method == "POST" else None
            response = await http.request(method, f"/v1/jobs/{job}{path}", json=body)
            assert (response.status_code, response.json()["code"]) == (404, unknown.json()["code"])
        assert [one["subject_id"] for one in (await http.get("/v1/jobs")).json()["jobs"]] == ["order-1"]
        nothing = (await http.get("/v1/jobs", params={"subject_id": "once"})).json()
        assert nothing == {"jobs": [], "after": None}

    async def test_a_run_about_an_invisible_subject_cannot_be_joined(self, http: httpx.AsyncClient) -> None:
        async def submit(subject: str) -> httpx.Response:
            body = {"job_type": "report.build", "payload": {"region": "DE"}, "run_identity": "one"}
            return await http.post("/v1/jobs", json={**body, "subject_id": subject})

        assert (await submit("once")).status_code == 202
        assert (await submit("order-1")).status_code == 403
