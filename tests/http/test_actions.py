"""Bulk actions: jobs are selected by payload and changed by a job, never those of another org."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from duly import Duly
from duly.core.principal import Principal
from duly.http.options import HttpOptions
from tests.http.conftest import caller, key_of, wait_until_ended
from tests.http.requests import REASON
from tests.worker.blocking_jobs import running_workers

PATH = "/v1/jobs/actions"
ACTION: dict[str, Any] = {"verb": "cancel", "jobs": {"payload": {"region": "DE"}}}


@pytest.fixture
async def jobs_of_two_orgs(app: Duly, http: httpx.AsyncClient, stranger: httpx.AsyncClient) -> None:
    """Four jobs of the org, two of them match; and one matching job of another org."""

    @app.job("report.build")
    async def build(region: str, pin: int = 1) -> str:
        return region

    for client, regions in ((http, "DE FR DE FR"), (stranger, "DE")):
        for n, region in enumerate(regions.split()):
            payload = {"region": region, "pin": n}
            submitted = await client.post("/v1/jobs", json={"job_type": "report.build", "payload": payload})
            assert submitted.status_code == 202


@pytest.mark.usefixtures("jobs_of_two_orgs")
async def test_matching_jobs_are_counted_and_canceled_by_a_job(
    app: Duly, http: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    matching = await http.get("/v1/jobs", params={"payload": ["region:DE"]})
    assert len(matching.json()["jobs"]) == 2
    counted = await http.post(PATH, json={**ACTION, "dry_run": True})
    two = {"count": 2, "at_least": False}
    assert (counted.status_code, counted.json()) == (
        200, {"verb": "cancel", "jobs": two, "by_status": {"queued": two}, "left": {}},
    )  # fmt: skip
    started = await http.post(PATH, json={**ACTION, **REASON})
    assert started.status_code == 202
    async with running_workers(app, queues=("q:maintenance",)):
        status = await wait_until_ended(http, started.json()["status_url"])
    assert (status["status"], status["job_type"]) == ("completed", "duly.bulk")
    for client, canceled in ((http, 2), (stranger, 0)):
        assert len((await client.get("/v1/jobs", params={"status": "canceled"})).json()["jobs"]) == canceled


@pytest.mark.usefixtures("jobs_of_two_orgs")
async def test_bulk_actions_and_payload_filters_need_the_operate_scope(
    app: Duly, api: FastAPI, org: uuid.UUID
) -> None:
    async with caller(api, await key_of(app, org, "jobs:read", "jobs:write")) as reader:
        assert (await reader.post(PATH, json={**ACTION, **REASON})).status_code == 403
        assert (await reader.get("/v1/jobs", params={"payload": "region:DE"})).status_code == 403
        assert (await reader.get("/v1/jobs", params={"error_code": "e"})).json()["jobs"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (ACTION, "reason"),
        ({**ACTION, **REASON, "per_second": 1.0}, "per_second"),
        ({**ACTION, **REASON, "jobs": {"payload": {"user.password": "x"}}}, "payload.user.password"),
    ],
)
async def test_invalid_requests_name_their_fields(http: httpx.AsyncClient, body: Any, field: str) -> None:
    refused = await http.post(PATH, json=body)
    assert refused.status_code == 422
    assert field in refused.text


class TestSubjects:
    """Bulk actions need access to every subject."""

    @pytest.fixture
    def options(self) -> HttpOptions:
        async def may(_: Principal, subject_id: str, __: str) -> bool:
            return subject_id != "*"

        return HttpOptions(may=may)

    async def test_bulk_actions_need_access_to_every_subject(self, http: httpx.AsyncClient) -> None:
        for extra in ({"dry_run": True}, REASON):
            assert (await http.post(PATH, json={**ACTION, **extra})).status_code == 403
