"""Analyses over HTTP: small ones at once, others as jobs with partial results, events and a permalink."""

from __future__ import annotations

import uuid

import httpx
import pytest

from duly import Duly
from tests.http.conftest import wait_until_ended
from tests.worker.working import working

TEXT = (
    "Die Rechnung über 1.234,56 € ist am 17. März 2026 fällig. Bitte überweisen Sie den Betrag rechtzeitig."
)
SMALL = {"sources": [{"name": "a.txt", "text": TEXT}]}


@pytest.fixture(autouse=True)
def _included(app: Duly) -> None:
    app.include_analyze()


async def test_a_small_analysis_is_returned_at_once(http: httpx.AsyncClient) -> None:
    response = await http.post("/analyze", json=SMALL)
    assert response.status_code == 200, response.text
    assert (await http.get("/v1/jobs")).json()["jobs"] == []
    analysis = response.json()
    assert analysis["languages"][0]["language"] == "de"
    assert analysis["timeline"]["items"][0]["date"] == "2026-03-17"


async def test_an_analysis_as_a_job_has_the_same_result(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient, app: Duly, org: uuid.UUID
) -> None:
    submitted = await http.post(
        "/analyze", json=SMALL, headers={"prefer": "respond-async", "idempotency-key": "k"}
    )
    assert submitted.status_code == 202
    url = submitted.json()["status_url"]
    assert (url, submitted.headers["location"]) == (f"/analyze/jobs/{submitted.json()['job_id']}", url)
    again = await http.post(
        "/analyze", json=SMALL, headers={"prefer": "respond-async", "idempotency-key": "k"}
    )
    assert (again.json(), again.headers["idempotency-replayed"]) == (submitted.json(), "true")
    async with working(app):
        job = await wait_until_ended(http, url)
    assert (job["status"], job["progress_percent"]) == ("completed", 100)
    assert job["result_url"] == f"/analyze/results/{job['result_id']}"
    result = (await http.get(job["result_url"])).json()
    immediate = (await http.post("/analyze", json=SMALL)).json()
    files = {"report": None, "readable": None}
    assert {**result["snapshot"]["value"], **files} == {**immediate, **files}
    assert (result["snapshot"]["kind"], result["latest_seq"]) == ("final", job["partial_count"] + 1)
    first = (await http.get(job["result_url"], params={"seq": 1})).json()["snapshot"]
    assert (first["kind"], first["chunk_key"]) == ("partial", "a.txt/language")
    events = (await http.get(submitted.json()["events_url"])).json()["events"]
    assert [event["event_seq"] for event in events] == list(range(1, len(events) + 1))
    kinds = [event["event_type"] for event in events]
    assert (kinds[0], kinds[-1]) == ("api.analyze.job.queued", "api.analyze.job.completed")
    assert {"api.analyze.job.started", "api.analyze.job.partial"} <= set(kinds)
    trace = submitted.headers["traceparent"].split("-")[1]
    assert {(event["org_id"], event["trace_id"]) for event in events} == {(str(org), trace)}
    assert events[-1]["result_id"] == job["result_id"]
    unknown = uuid.uuid4()
    for url_of_another_org, unknown_url in (
        (url, f"/analyze/jobs/{unknown}"),
        (job["result_url"], f"/analyze/results/{unknown}"),
        (submitted.json()["events_url"], f"/analyze/jobs/{unknown}/events"),
    ):
        foreign = await stranger.get(url_of_another_org)
        assert (foreign.status_code, foreign.json()["code"]) == (
            404,
            (await stranger.get(unknown_url)).json()["code"],
        )


async def test_a_large_analysis_always_becomes_a_job_and_can_be_canceled(http: httpx.AsyncClient) -> None:
    blob = await http.post("/v1/blobs", content=(TEXT * 500).encode())
    submitted = await http.post("/analyze", json={"sources": [{"name": "long", "blob": blob.json()["blob"]}]})
    assert submitted.status_code == 202
    for _ in range(2):
        response = await http.post(f"{submitted.json()['status_url']}/cancel", json={"reason": "enough"})
        assert (response.status_code, response.json()["status"]) == (200, "canceled")
    events = (await http.get(submitted.json()["events_url"])).json()["events"]
    assert events[-1]["event_type"] == "api.analyze.job.canceled"


async def test_other_jobs_look_unknown_as_analyses(http: httpx.AsyncClient, app: Duly) -> None:
    @app.job("report.build")
    def build() -> None: ...

    job = (await http.post("/v1/jobs", json={"job_type": "report.build"})).json()["job_id"]
    assert (await http.get(f"/v1/jobs/{job}")).status_code == 200
    assert (await http.get(f"/analyze/jobs/{job}")).status_code == 404
    assert (await http.post(f"/analyze/jobs/{job}/cancel", json={"reason": "r"})).status_code == 404


async def test_an_invalid_source_is_named(http: httpx.AsyncClient, stranger: httpx.AsyncClient) -> None:
    foreign = (await stranger.post("/v1/blobs", content=b"theirs")).json()["blob"]
    for sources, field in (
        ([], "sources"),
        ([{"name": "a"}], "sources.0.text"),
        ([{"name": "a", "text": "x"}, {"name": "a", "text": "y"}], "sources.1.name"),
        ([{"name": "a", "text": "x"}, {"name": "b", "blob": foreign}], "sources.1.blob"),
        ([{"name": "a", "text": "x\0"}], "sources.0.text"),
    ):
        response = await http.post("/analyze", json={"sources": sources})
        assert (response.status_code, response.json()["errors"][0]["field"]) == (422, field), response.text
