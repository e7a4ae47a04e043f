"""Resources of another org are reported like missing ones, on every route about documents."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from duly import Duly
from tests.apps.documents.http_requests import DOCUMENTS, folder, send
from tests.http.foreign_org import PARAMETER, Route, routes

BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("PATCH", "/{document_id}"): {"json": {"name": "x"}},
    ("PUT", "/{document_id}/content"): {"content": b"x"},
    ("PUT", "/{document_id}/doc_type"): {"json": {"doc_type": "letter"}},
    ("POST", "/{document_id}/extractions"): {"json": {}},
    ("PUT", "/uploads/{upload_id}/parts/{part}"): {"content": b"x"},
    ("POST", "/uploads/{upload_id}/finish"): {"json": {"name": "x"}},
    ("PATCH", "/folders/{node_id}"): {"json": {"name": "x"}},
    ("PUT", "/folders/{node_id}/grants"): {"json": {"grants": []}},
    ("PATCH", "/connectors/{connector_id}"): {"json": {"disabled": True, "reason": "r"}},
    ("POST", "/connectors/{connector_id}/import"): {"json": {}},
}
"""What is sent where something has to be."""


@pytest.fixture
async def theirs(http: httpx.AsyncClient) -> dict[str, str]:
    """One of everything."""
    node_id = await folder(http, "Zyxel")
    document = (await send(http, "Zyxel", "Zyxel.txt", node_id=node_id))["document"]
    upload = await http.post(f"{DOCUMENTS}/uploads", json={"sha256": "a" * 64, "size": 1})
    account = {"provider": "dropbox", "name": "Zyxel", "secret_ref": "file:zyxel"}
    connector = await http.post(f"{DOCUMENTS}/connectors", json=account)
    await http.put(f"{DOCUMENTS}/filing", json={"doc_type": "zyxel", "node_id": node_id})
    return {
        "document_id": document["document_id"],
        "node_id": node_id,
        "upload_id": upload.json()["upload_id"],
        "connector_id": connector.json()["connector_id"],
        "part": "1",
    }


def _about(api: FastAPI) -> list[Route]:
    return [route for route in routes(api) if route.path.startswith(DOCUMENTS)]


async def test_resources_of_other_orgs_are_reported_like_missing_ones(
    api: FastAPI, stranger: httpx.AsyncClient, theirs: dict[str, str], sql: psycopg.Connection
) -> None:
    before = _belongings(sql)
    found = [route for route in _about(api) if PARAMETER.search(route.path)]
    assert len(found) > 20
    for route in found:
        nobodys = {name: "1" if name == "part" else str(uuid.uuid4()) for name in theirs}
        looks = [await _look(stranger, route, ids) for ids in (theirs, nobodys)]
        assert looks[0] == looks[1], route
        assert looks[0][0] == 404, (route, looks[0])
    assert _belongings(sql) == before, "and none of it has changed"


async def _look(client: httpx.AsyncClient, route: Route, ids: dict[str, str]) -> tuple[int, dict[str, Any]]:
    said = BODIES.get((route.method, route.path.removeprefix(DOCUMENTS)), {})
    params = {"reason": "r"} if route.method == "DELETE" and "uploads" not in route.path else None
    answer = await client.request(route.method, route.at(ids), params=params, **said)
    return answer.status_code, {**answer.json(), "request_id": ""}


async def test_lists_contain_nothing_of_other_orgs(
    api: FastAPI, http: httpx.AsyncClient, stranger: httpx.AsyncClient, theirs: dict[str, str]
) -> None:
    lists = [route for route in _about(api) if route.method == "GET" and not PARAMETER.search(route.path)]
    assert len(lists) >= 5
    shown = 0
    for route in lists:
        own, others = [await client.get(route.path, params=_needed(route)) for client in (http, stranger)]
        assert (own.status_code, others.status_code) == (200, 200), route
        shown += any(one in own.text for one in theirs.values())
        assert not [
            one for one in (*theirs.values(), "Zyxel", "zyxel") if len(one) > 1 and one in others.text
        ]
    assert shown >= 4, "there was something to see"


def _needed(route: Route) -> dict[str, str]:
    return {"q": "Zyxel"} if route.path.endswith("/search") else {}


async def test_ids_of_other_orgs_are_refused_in_requests(
    stranger: httpx.AsyncClient, theirs: dict[str, str], library: Duly
) -> None:
    mine = (await send(stranger, "mine"))["document"]["document_id"]
    begun = await stranger.post(f"{DOCUMENTS}/uploads", json={"sha256": "a" * 64, "size": 1})
    assert begun.json()["upload_id"] != theirs["upload_id"]
    for name in ("node_id", "document_id"):
        for said in (theirs[name], str(uuid.uuid4())):
            form = await stranger.post(DOCUMENTS, files={"file": ("a", b"a")}, data={name: said})
            assert form.status_code == 404, name
    account = {"provider": "dropbox", "name": "n", "secret_ref": "file:zyxel"}
    for said in (theirs["node_id"], str(uuid.uuid4())):
        node = {"node_id": said}
        answers = [
            await stranger.patch(f"{DOCUMENTS}/{mine}", json=node),
            await stranger.post(f"{DOCUMENTS}/folders", json={"name": "n", "parent_id": said}),
            await stranger.put(f"{DOCUMENTS}/filing", json={"doc_type": "letter", **node}),
            await stranger.post(f"{DOCUMENTS}/connectors", json={**account, **node}),
            await stranger.get(DOCUMENTS, params=node),
            await stranger.get(f"{DOCUMENTS}/search", params={"q": "mine", **node}),
        ]
        assert [answer.status_code for answer in answers] == [404] * 6


def _belongings(sql: psycopg.Connection) -> list[Any]:
    tables = (
        "documents",
        "document_versions",
        "nodes",
        "node_grants",
        "uploads",
        "connectors",
        "extractions",
    )
    return [sql.execute(f"select * from documents.{table} order by 1, 2").fetchall() for table in tables]
