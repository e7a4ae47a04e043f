"""Analyses over HTTP: small ones at once, others as jobs with partial results, events and a permalink."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from duly import Duly
from tests.worker.working import working

TEXT = (
    "Die Rechnung über 1.234,56 € ist am 17. März 2026 fällig. Bitte überweisen Sie den Betrag rechtzeitig."
)
SMALL = {"sources": [{"name": "a.txt", "text": TEXT}]}


@pytest.fixture(autouse=True)
def _included(app: Duly) -> None:
    app.include_analyze()


async def ended(http: httpx.AsyncClient, place: str) -> dict[str, Any]:
    while (said := (await http.get(place, headers={"prefer": "wait=30"})).json())["completed_at"] is None:
        pass
    return dict(said)


async def test_small_work_is_answered_at_once(http: httpx.AsyncClient) -> None:
    answer = await http.post("/analyze", json=SMALL)
    assert answer.status_code == 200, answer.text
    assert (await http.get("/v1/jobs")).json()["jobs"] == []
    said = answer.json()
    assert said["languages"][0]["language"] == "de"
    assert said["timeline"]["items"][0]["date"] == "2026-03-17"


async def test_other_work_is_a_job_with_the_same_result(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient, app: Duly, org: uuid.UUID
) -> None:
    asked = await http.post(
        "/analyze", json=SMALL, headers={"prefer": "respond-async", "idempotency-key": "k"}
    )
    assert asked.status_code == 202
    place = asked.json()["status_url"]
    assert (place, asked.headers["location"]) == (f"/analyze/jobs/{asked.json()['job_id']}", place)
    again = await http.post(
        "/analyze", json=SMALL, headers={"prefer": "respond-async", "idempotency-key": "k"}
    )
    assert (again.json(), again.headers["idempotency-replayed"]) == (asked.json(), "true")
    async with working(app):
        said = await ended(http, place)
    assert (said["status"], said["progress_percent"]) == ("completed", 100)
    assert said["result_url"] == f"/analyze/results/{said['result_id']}"
    result = (await http.get(said["result_url"])).json()
    at_once = (await http.post("/analyze", json=SMALL)).json()
    files = {"report": None, "readable": None}
    assert {**result["snapshot"]["value"], **files} == {**at_once, **files}
    assert (result["snapshot"]["kind"], result["latest_seq"]) == ("final", said["partial_count"] + 1)
    first = (await http.get(said["result_url"], params={"seq": 1})).json()["snapshot"]
    assert (first["kind"], first["chunk_key"]) == ("partial", "a.txt/language")
    events = (await http.get(asked.json()["events_url"])).json()["events"]
    assert [event["event_seq"] for event in events] == list(range(1, len(events) + 1))
    kinds = [event["event_type"] for event in events]
    assert (kinds[0], kinds[-1]) == ("api.analyze.job.queued", "api.analyze.job.completed")
    assert {"api.analyze.job.started", "api.analyze.job.partial"} <= set(kinds)
    trace = asked.headers["traceparent"].split("-")[1]
    assert {(event["org_id"], event["trace_id"]) for event in events} == {(str(org), trace)}
    assert events[-1]["result_id"] == said["result_id"]
    unknown = uuid.uuid4()
    for known, nobody in (
        (place, f"/analyze/jobs/{unknown}"),
        (said["result_url"], f"/analyze/results/{unknown}"),
        (asked.json()["events_url"], f"/analyze/jobs/{unknown}/events"),
    ):
        foreign = await stranger.get(known)
        assert (foreign.status_code, foreign.json()["code"]) == (
            404,
            (await stranger.get(nobody)).json()["code"],
        )


async def test_large_work_is_never_done_at_once_and_can_be_canceled(http: httpx.AsyncClient) -> None:
    blob = await http.post("/v1/blobs", content=(TEXT * 500).encode())
    asked = await http.post("/analyze", json={"sources": [{"name": "long", "blob": blob.json()["blob"]}]})
    assert asked.status_code == 202
    for _ in range(2):
        answer = await http.post(f"{asked.json()['status_url']}/cancel", json={"reason": "enough"})
        assert (answer.status_code, answer.json()["status"]) == (200, "canceled")
    events = (await http.get(asked.json()["events_url"])).json()["events"]
    assert events[-1]["event_type"] == "api.analyze.job.canceled"


async def test_other_jobs_are_no_analyses(http: httpx.AsyncClient, app: Duly) -> None:
    @app.job("report.build")
    def build() -> None: ...

    job = (await http.post("/v1/jobs", json={"job_type": "report.build"})).json()["job_id"]
    assert (await http.get(f"/v1/jobs/{job}")).status_code == 200
    assert (await http.get(f"/analyze/jobs/{job}")).status_code == 404
    assert (await http.post(f"/analyze/jobs/{job}/cancel", json={"reason": "r"})).status_code == 404


async def test_what_is_wrong_with_a_source_is_named(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    foreign = (await stranger.post("/v1/blobs", content=b"theirs")).json()["blob"]
    for sources, field in (
        ([], "sources"),
        ([{"name": "a"}], "sources.0.text"),
        ([{"name": "a", "text": "x"}, {"name": "a", "text": "y"}], "sources.1.name"),
        ([{"name": "a", "text": "x"}, {"name": "b", "blob": foreign}], "sources.1.blob"),
        ([{"name": "a", "text": "x\0"}], "sources.0.text"),
    ):
        answer = await http.post("/analyze", json={"sources": sources})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field), answer.text
