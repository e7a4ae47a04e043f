"""Alerts over HTTP: an org lists its own, operators those of the installation; health needs no key."""

from __future__ import annotations

import uuid

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from duly import Duly
from duly.core.job import SYSTEM_ORG
from duly.features.alerts.alerter import Alerter
from duly.features.alerts.thresholds import Thresholds
from duly.http import health as health_routes
from tests.db.tenancy import insert
from tests.http.conftest import caller, key_of
from tests.http.requests import platform_key
from tests.worker.working import working


async def test_an_org_sees_its_alerts_and_the_platform_its_own(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient, app: Duly, api: FastAPI, org: uuid.UUID,
    sql: psycopg.Connection,
) -> None:  # fmt: skip
    for n in range(3):
        insert(sql, "dead_letters", org, job_id=uuid.uuid4(), resolution=None, error_code=f"e{n}")
    insert(
        sql, "alerts", SYSTEM_ORG, kind="queue_depth", target="q:default", resolved_at="2026-11-15T12:00:00Z"
    )
    await Alerter(app, Thresholds()).once()
    page = (await http.get("/v1/alerts", params={"limit": 2})).json()
    rest = (await http.get("/v1/alerts", params={"limit": 2, "after": page["after"]})).json()
    alerts = page["alerts"] + rest["alerts"]
    assert ({one["kind"] for one in alerts}, len({one["target"] for one in alerts})) == ({"dead_letter"}, 3)
    assert "org_id" not in alerts[0]
    assert (await http.get("/v1/alerts", params={"kind": "webhook_failing"})).json()["alerts"] == []
    assert (await http.get("/v1/alerts", params={"kind": "x"})).status_code == 422
    assert (await stranger.get("/v1/alerts", params={"all": True})).json() == {"alerts": [], "after": None}
    assert (await http.get("/v1/platform/alerts")).status_code == 403
    async with caller(api, await key_of(app, org, "jobs:read")) as reader:
        assert (await reader.get("/v1/alerts")).status_code == 403
    async with caller(api, await platform_key(app)) as platform:
        assert (await platform.get("/v1/platform/alerts")).json()["alerts"] == []
        [resolved] = (await platform.get("/v1/platform/alerts", params={"all": True})).json()["alerts"]
        assert (resolved["kind"], resolved["resolved_at"]) == ("queue_depth", "2026-11-15T12:00:00Z")


async def test_readiness_does_not_depend_on_the_health_of_the_installation(
    api: FastAPI, app: Duly, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_routes, "_CACHE_TTL", 0)
    async with caller(api, None) as anonymous:

        async def health() -> tuple[int, list[str]]:
            response = await anonymous.get("/healthz")
            return response.status_code, response.json()["reasons"]

        async with working(app):
            assert await health() == (200, [])
        ago = "now() - interval '6 minutes'"
        sql.execute(f"update duly.workers set heartbeat_at = {ago}, stopped_at = {ago}")
        assert await health() == (503, ["no_worker"]), "health does not depend on the alerter"
        insert(sql, "alerts", SYSTEM_ORG, kind="dead_rate", severity="critical")
        insert(sql, "alerts", SYSTEM_ORG, alert_id=uuid.uuid4(), kind="queue_depth", severity="warning")
        monkeypatch.setattr(health_routes, "_CACHE_TTL", 3600)
        assert await health() == (503, ["dead_rate", "no_worker"])
        sql.execute("delete from duly.alerts")
        assert await health() == (503, ["dead_rate", "no_worker"]), "the result is cached"
        assert (await anonymous.get("/readyz")).status_code == 200
