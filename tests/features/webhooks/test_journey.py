"""The whole path: create an endpoint over HTTP, run a job, receive its message, respond with 410."""

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
from tests.features.webhooks.receiver import Received, Receiver, receiving
from tests.http.conftest import ANNA, caller, key_of
from tests.http.requests import REASON
from tests.worker.working import until, working

HERE = ("127.0.0.1",)


@pytest.fixture
async def app(fresh: FreshDatabase, tmp_path: Path) -> AsyncIterator[Duly]:
    """An application with its chores that may send to a receiver on this machine."""
    direct = fresh.direct_url if fresh.url != fresh.direct_url else None
    duly = Duly(
        database_url=fresh.url,
        database_direct_url=direct,
        blobs_url=str(tmp_path / "blobs"),
        webhook_allow=HERE,
    )

    @duly.job("report.build")
    async def build(number: int) -> int:
        return number

    yield duly
    await duly.close()


@pytest.fixture
async def http(app: Duly, org: uuid.UUID) -> AsyncIterator[httpx.AsyncClient]:
    api = create_app(app, HttpOptions(webhook_allow=HERE))
    async with caller(api, await key_of(app, org)) as client:
        yield client


def verified(got: Received, secret: str) -> dict[str, Any]:
    """Verify a message with the library of Standard Webhooks."""
    message: dict[str, Any] = Webhook(secret).verify(got.body, got.headers)
    return message


def is_now(status: str, got: Received) -> str:
    _, hex_id, _ = got.headers["webhook-id"].split("_")
    return f"select status = '{status}' from duly.webhook_deliveries where job_id = '{uuid.UUID(hex_id)}'"


async def test_a_receiver_gets_committed_events_with_signatures_of_standard_webhooks(
    app: Duly, org: uuid.UUID, http: httpx.AsyncClient, sql: psycopg.Connection
) -> None:
    await app.members.set(org, "ines", Role.ADMIN, actor=ANNA, reason="she looks after it")
    async with receiving() as receiver, working(app):
        created = await http.post(
            "/v1/webhooks", json={**REASON, "url": receiver.url("/hook"), "event_types": ["job.completed"]}
        )
        url, first = created.headers["location"], created.json()["secret"]
        receiver.statuses["/hook"] = 204
        got = await _message_of_a_job(http, receiver, 1)
        message = verified(got, first)
        await until(sql, is_now("delivered", got))
        [logged] = (await http.get(f"{url}/deliveries")).json()["deliveries"]
        assert logged["message_id"] == message["id"] == got.headers["webhook-id"]
        assert (message["type"], message["subject"]) == ("job.completed", logged["job_id"])
        assert [(one["status"], one["error"]) for one in logged["try_log"]] == [(204, None)]

        second = (await http.post(f"{url}/rotate", json=REASON)).json()["secret"]
        both = await _message_of_a_job(http, receiver, 2)
        assert verified(both, first) == verified(both, second)
        await http.post(f"{url}/rotate", json={**REASON, "overlap_seconds": 0})

        receiver.statuses["/hook"] = 410
        refused = await _message_of_a_job(http, receiver, 3)
        await until(sql, is_now("failed", refused))
        current = (await http.get(url)).json()
        assert (current["disabled_by"], "410" in current["disable_reason"]) == ("system:duly", True)
        notified = sql.execute("select recipient, template_key from duly.notifications").fetchall()
        assert notified == [("ines", "webhook.disabled")]

        receiver.statuses["/hook"] = 204
        delivery = f"{url}/deliveries/{refused.headers['webhook-id']}"
        assert (await http.post(f"{delivery}/resend", json=REASON)).status_code == 409
        await http.post(f"{url}/enable", json=REASON)
        await http.post(f"{delivery}/resend", json=REASON)
        again = (await receiver.until(4))[3]
        assert (again.message, again.headers["webhook-id"]) == (
            refused.message,
            refused.headers["webhook-id"],
        )
        await until(sql, is_now("delivered", again))
        tries = (await http.get(delivery)).json()["try_log"]
        assert [one["status"] for one in tries] == [410, 204]
    actions = [entry["action"] for entry in (await http.get("/v1/audit")).json()["entries"]]
    for action in ("created", "secret_rotated", "disabled", "enabled", "resent"):
        assert f"webhook.{action}" in actions


async def _message_of_a_job(http: httpx.AsyncClient, receiver: Receiver, n: int) -> Received:
    """Run a job; return the n-th message of the receiver, which is about it."""
    job = (await http.post("/v1/jobs", json={"job_type": "report.build", "payload": {"number": n}})).json()[
        "job_id"
    ]
    got = (await receiver.until(n))[n - 1]
    assert got.message["subject"] == job
    return got
