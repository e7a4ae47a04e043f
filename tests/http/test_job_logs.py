"""Job logs over HTTP: paginated, and visible to clients that may see the job."""

from __future__ import annotations

import uuid

import httpx
import pytest
from fastapi import FastAPI

from duly import AsyncClient, Context, Duly
from duly.core.errors import UnknownJob
from duly.core.principal import Principal
from duly.http.options import HttpOptions
from tests.http.conftest import key_of
from tests.http.requests import check_looks_unknown
from tests.worker.working import TWO_ATTEMPTS, working


async def _may(principal: Principal, subject_id: str, action: str) -> bool:
    return action == "submit" or subject_id != "hidden"


@pytest.fixture
def options() -> HttpOptions:
    return HttpOptions(may=_may)


async def test_log_lines_are_visible_to_clients_that_may_see_the_job(
    app: Duly, org: uuid.UUID, api: FastAPI, http: httpx.AsyncClient, stranger: httpx.AsyncClient, key: str
) -> None:
    @app.job("talk.twice", retry=TWO_ATTEMPTS)
    async def twice(ctx: Context) -> None:
        ctx.log.info("one", extra={"processed": 1, "secret": "no"})
        ctx.log.warning("two")
        if ctx.attempt == 1:
            raise ValueError("again")

    transport = httpx.ASGITransport(api, raise_app_exceptions=False)
    async with AsyncClient("http://duly.test", key, transport=transport) as client:
        job = await client.submit("talk.twice")
        path = f"/v1/jobs/{job.job_id}/logs"
        assert (await http.get(path)).json() == {"lines": [], "after": None}
        async with working(app):
            await job.wait(60)
        log_lines = [(line.attempt, line.level, line.message) async for line in job.logs()]
        assert log_lines == [(n, *line) for n in (1, 2) for line in (("info", "one"), ("warning", "two"))]
        assert [line.attempt async for line in client.logs(str(job.job_id), attempt=2)] == [2, 2]
        with pytest.raises(UnknownJob):
            [line async for line in client.logs(uuid.uuid4())]

    page = (await http.get(path, params={"limit": 1})).json()
    assert (page["lines"][0]["message"], page["lines"][0]["fields"]) == ("one", {"processed": 1})
    rest = (await http.get(path, params={"after": page["after"]})).json()
    assert [line["message"] for line in rest["lines"]] == ["two", "one", "two"]
    for wrong in ({"after": "x"}, {"attempt": "0"}, {"limit": "0"}, {"about": "1"}):
        assert (await http.get(path, params=wrong)).status_code == 422, wrong

    await check_looks_unknown(stranger, "GET", "/v1/jobs/{}/logs", job.job_id)
    hidden = {"job_type": "talk.twice", "subject_id": "hidden"}
    other = uuid.UUID((await http.post("/v1/jobs", json=hidden)).json()["job_id"])
    await check_looks_unknown(http, "GET", "/v1/jobs/{}/logs", other)
    http.headers["authorization"] = f"Bearer {await key_of(app, org, 'jobs:write')}"
    assert (await http.get(path)).status_code == 403
