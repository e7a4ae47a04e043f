"""The whole way: an endpoint is made over HTTP, a job ends, its receiver is told; and when it is gone."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from standardwebhooks.webhooks import Webhook

from duly import Duly
from duly.core.principal import Role
from duly.http.application import create_app
from duly.http.options import HttpOptions
from duly.testing import FreshDatabase
from tests.features.webhooks.receiver import Got, Receiver, receiving
from tests.http.conftest import ANNA, caller, key_of
from tests.http.requests import WHY
from tests.worker.working import until, working

HERE = ("127.0.0.1",)


@pytest.fixture
async def app(fresh: FreshDatabase, tmp_path: Path) -> AsyncIterator[Duly]:
    """With its chores, and a receiver on this machine allowed."""
    direct = fresh.direct_url if fresh.url != fresh.direct_url else None
    made = Duly(
        database_url=fresh.url,
        database_direct_url=direct,
        blobs_url=str(tmp_path / "blobs"),
        webhook_allow=HERE,
    )

    @made.job("report.build")
    async def build(number: int) -> int:
        return number

    yield made
    await made.close()


@pytest.fixture
async def http(app: Duly, org: uuid.UUID) -> AsyncIterator[httpx.AsyncClient]:
    api = create_app(app, HttpOptions(webhook_allow=HERE))
    async with caller(api, await key_of(app, org)) as client:
        yield client


def verified(got: Got, secret: str) -> dict[str, Any]:
    """What a receiver does that knows nothing of Duly."""
    found: dict[str, Any] = Webhook(secret).verify(got.body, got.headers)
    return found


def is_now(status: str, got: Got) -> str:
    _, hex_id, _ = got.headers["webhook-id"].split("_")
    return f"select status = '{status}' from duly.webhook_deliveries where job_id = '{uuid.UUID(hex_id)}'"


async def test_a_receiver_is_told_what_committed_with_signatures_that_anybody_can_check(
    app: Duly, org: uuid.UUID, http: httpx.AsyncClient, sql: psycopg.Connection
) -> None:
    await app.members.set(org, "ines", Role.ADMIN, actor=ANNA, reason="she looks after it")
    async with receiving() as receiver, working(app):
        made = await http.post(
            "/v1/webhooks", json={**WHY, "url": receiver.url("/hook"), "event_types": ["job.completed"]}
        )
        place, first = made.headers["location"], made.json()["secret"]
        receiver.answers["/hook"] = 204
        got = await _told_of_a_job(http, receiver, 1)
        said = verified(got, first)
        await until(sql, is_now("delivered", got))
        [logged] = (await http.get(f"{place}/deliveries")).json()["deliveries"]
        assert logged["message_id"] == said["id"] == got.headers["webhook-id"]
        assert (said["type"], said["subject"]) == ("job.completed", logged["job_id"])
        assert [(one["status"], one["error"]) for one in logged["try_log"]] == [(204, None)]

        second = (await http.post(f"{place}/rotate", json=WHY)).json()["secret"]
        both = await _told_of_a_job(http, receiver, 2)
        assert verified(both, first) == verified(both, second)
        await http.post(f"{place}/rotate", json={**WHY, "overlap_seconds": 0})

        receiver.answers["/hook"] = 410
        refused = await _told_of_a_job(http, receiver, 3)
        await until(sql, is_now("failed", refused))
        seen = (await http.get(place)).json()
        assert (seen["disabled_by"], "410" in seen["disable_reason"]) == ("system:duly", True)
        told = sql.execute("select recipient, template_key from duly.notifications").fetchall()
        assert told == [("ines", "webhook.disabled")]

        receiver.answers["/hook"] = 204
        message = f"{place}/deliveries/{refused.headers['webhook-id']}"
        assert (await http.post(f"{message}/resend", json=WHY)).status_code == 409
        await http.post(f"{place}/enable", json=WHY)
        await http.post(f"{message}/resend", json=WHY)
        again = (await receiver.until(4))[3]
        assert (again.said, again.headers["webhook-id"]) == (refused.said, refused.headers["webhook-id"])
        await until(sql, is_now("delivered", again))
        tries = (await http.get(message)).json()["try_log"]
        assert [one["status"] for one in tries] == [410, 204]
    actions = [entry["action"] for entry in (await http.get("/v1/audit")).json()["entries"]]
    for action in ("created", "secret_rotated", "disabled", "enabled", "resent"):
        assert f"webhook.{action}" in actions


async def _told_of_a_job(http: httpx.AsyncClient, receiver: Receiver, n: int) -> Got:
    """Have a job done; what the receiver gets, as the message of that number."""
    job = (await http.post("/v1/jobs", json={"job_type": "report.build", "payload": {"number": n}})).json()[
        "job_id"
    ]
    got = (await receiver.until(n))[n - 1]
    assert got.said["subject"] == job
    return got
