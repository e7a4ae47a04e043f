"""No page scans a whole table: each is opened on a full database, and every plan is checked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import pytest
from bench.console.fill import Stock, fill
from bench.console.tour import tour
from fastapi import FastAPI

from duly import Duly
from duly.apps.documents.schema import SCHEMA
from duly.console import install
from duly.core.job import SYSTEM_ORG
from duly.db.pool import Connection
from duly.http.application import create_app
from duly.http.options import HttpOptions
from duly.testing import DatabaseCluster
from tests.http.conftest import key_of
from tests.plans import plan_recorder
from tests.plans.plan_recorder import OPTIONS, PlanRecorder

JOBS = 8_000
ALSO = (
    "audit_entries",
    "notifications",
    "webhook_deliveries",
    "alerts",
    "schedules",
    "job_logs",
    "artifacts",
)
"""Tables that grow with the number of jobs."""
TINY_PARTITION_PAGES = 8
"""Shortly after midnight yesterday's partition has few rows, and reading it whole is the best plan."""
FEW = "claims"
"""One row per running batch: counting the running jobs reads them all."""


@pytest.fixture(scope="module")
def stock(cluster: DatabaseCluster) -> Iterator[tuple[str, Stock]]:
    with cluster.fresh(schemas=[SCHEMA]) as fresh, psycopg.connect(fresh.direct_url, autocommit=True) as conn:
        yield fresh.direct_url, fill(conn, JOBS)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> PlanRecorder:
    """The plans of every connection of the pool."""
    monkeypatch.setattr(
        plan_recorder, "GROWING", [table for table in (*plan_recorder.GROWING, *ALSO) if table != FEW]
    )
    found, plain = PlanRecorder(), Connection.__init__

    def made(self: Connection, *given: Any, **named: Any) -> None:
        plain(self, *given, **named)
        self.add_notice_handler(found.hear)

    monkeypatch.setattr(Connection, "__init__", made)
    return found


@pytest.fixture
async def api(stock: tuple[str, Stock], seen: PlanRecorder, tmp_path: Path) -> AsyncIterator[FastAPI]:
    url = f"{stock[0]}{'&' if '?' in stock[0] else '?'}options={quote(OPTIONS)}"
    app = Duly(database_url=url, blobs_url=str(tmp_path), maintenance=False)
    app.include_documents()
    made = create_app(app, HttpOptions())
    install(made)
    yield made
    await app.close()


def person(api: FastAPI, key: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(api, raise_app_exceptions=False)
    headers = {"authorization": f"Bearer {key}"}
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)


async def test_no_page_scans_a_whole_table(
    api: FastAPI, stock: tuple[str, Stock], seen: PlanRecorder
) -> None:
    app: Duly = api.state.service.app
    keys = {
        "admin": await key_of(app, stock[1].large),
        "platform": await key_of(app, SYSTEM_ORG, "platform"),
    }
    with psycopg.connect(stock[0]) as conn:
        query = "select relname from pg_class where relispartition and relpages between 0 and %s"
        tiny = {name for (name,) in conn.execute(query, [TINY_PARTITION_PAGES])}
    scanned: dict[str, set[str]] = {}
    opened = 0
    for who, key in keys.items():
        async with person(api, key) as visitor:
            for stop in tour(api, stock[1]):
                seen.plans.clear()
                answer = await visitor.get(stop.path)
                assert answer.status_code in (200, 403, 404), f"{who} {stop.path}: {answer.text}"
                opened += answer.status_code == 200
                if scans := seen.scans - tiny:
                    scanned[f"{who} {stop.path}"] = scans
    assert scanned == {}
    assert opened > 1
    seen.plans.clear()
    async with (await app.resources()).database.engine() as conn:
        await conn.execute("select count(*) from duly.job_records where actor_id = 'u7'")
    assert seen.scans, "a scan would have been seen"
