"""Many jobs are found by their payload, and changed together: by whom, how many, and never another org's."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from duly import Duly
from duly.core.principal import Principal
from duly.http.options import HttpOptions
from tests.http.conftest import caller, key_of
from tests.http.requests import WHY
from tests.worker.blocking_jobs import running_workers

PATH = "/v1/jobs/actions"
ACTION: dict[str, Any] = {"verb": "cancel", "jobs": {"payload": {"region": "DE"}}}


@pytest.fixture
async def some(app: Duly, http: httpx.AsyncClient, stranger: httpx.AsyncClient) -> None:
    """Four jobs of ours, two of them about the region that is asked for; one of somebody else."""

    @app.job("report.build")
    async def build(region: str, pin: int = 1) -> str:
        return region

    for who, regions in ((http, "DE FR DE FR"), (stranger, "DE")):
        for n, region in enumerate(regions.split()):
            payload = {"region": region, "pin": n}
            made = await who.post("/v1/jobs", json={"job_type": "report.build", "payload": payload})
            assert made.status_code == 202


@pytest.mark.usefixtures("some")
async def test_matching_jobs_are_counted_and_canceled_by_a_job(
    app: Duly, http: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    found = await http.get("/v1/jobs", params={"payload": ["region:DE"]})
    assert len(found.json()["jobs"]) == 2
    seen = await http.post(PATH, json={**ACTION, "dry_run": True})
    two = {"count": 2, "at_least": False}
    assert (seen.status_code, seen.json()) == (
        200, {"verb": "cancel", "jobs": two, "by_status": {"queued": two}, "left": {}},
    )  # fmt: skip
    started = await http.post(PATH, json={**ACTION, **WHY})
    assert started.status_code == 202
    async with running_workers(app, queues=("q:maintenance",)):
        place, patience = started.json()["status_url"], {"prefer": "wait=30"}
        while (status := (await http.get(place, headers=patience)).json())["completed_at"] is None:
            pass
    assert (status["status"], status["job_type"]) == ("completed", "duly.bulk")
    for who, canceled in ((http, 2), (stranger, 0)):
        assert len((await who.get("/v1/jobs", params={"status": "canceled"})).json()["jobs"]) == canceled


@pytest.mark.usefixtures("some")
async def test_without_the_operate_scope_there_are_neither_actions_nor_payloads(
    app: Duly, api: FastAPI, org: uuid.UUID
) -> None:
    async with caller(api, await key_of(app, org, "jobs:read", "jobs:write")) as reader:
        assert (await reader.post(PATH, json={**ACTION, **WHY})).status_code == 403
        assert (await reader.get("/v1/jobs", params={"payload": "region:DE"})).status_code == 403
        assert (await reader.get("/v1/jobs", params={"error_code": "e"})).json()["jobs"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (ACTION, "reason"),
        ({**ACTION, **WHY, "per_second": 1.0}, "per_second"),
        ({**ACTION, **WHY, "jobs": {"payload": {"user.password": "x"}}}, "payload.user.password"),
    ],
)
async def test_invalid_requests_name_their_fields(http: httpx.AsyncClient, body: Any, field: str) -> None:
    refused = await http.post(PATH, json=body)
    assert refused.status_code == 422
    assert field in refused.text


class TestSubjects:
    """Where jobs are not told apart, only who may see every subject may act."""

    @pytest.fixture
    def options(self) -> HttpOptions:
        async def may(_: Principal, subject_id: str, __: str) -> bool:
            return subject_id != "*"

        return HttpOptions(may=may)

    async def test_without_access_to_every_subject_only_single_jobs_can_be_changed(
        self, http: httpx.AsyncClient
    ) -> None:
        for extra in ({"dry_run": True}, WHY):
            assert (await http.post(PATH, json={**ACTION, **extra})).status_code == 403
