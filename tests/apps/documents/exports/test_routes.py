"""Exports over HTTP: only their requester sees the job and its files."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any

import httpx

from duly import Duly
from tests.apps.documents.http_requests import DOCUMENTS, folder, send
from tests.http.conftest import caller, key_of
from tests.worker.working import WAIT_TIMEOUT, working

EXPORTS = f"{DOCUMENTS}/exports"


async def test_documents_and_hits_are_exported_for_their_requester(
    http: httpx.AsyncClient, clerk: httpx.AsyncClient, library: Duly, api: Any, org: uuid.UUID
) -> None:
    closed = await folder(http, "Personal")
    grants = {"grants": [{"principal": "user:eve", "level": "read"}]}
    await http.put(f"{DOCUMENTS}/folders/{closed}/grants", json=grants)
    sent = [
        await send(http, "Die Miete ist fällig", "offen.txt", engine="fast"),
        await send(http, "Die Miete der Direktorin", "geheim.txt", engine="fast", node_id=closed),
    ]
    async with working(library):
        for one in sent:
            await library.handle(one["job_id"], org_id=org).wait(WAIT_TIMEOUT)
        asked: list[dict[str, Any]] = [
            {"format": "jsonl"},
            {"format": "csv", "query": "Miete", "filters": {"doc_types": None}},
            {"document_ids": [one["document"]["document_id"] for one in sent] + [str(uuid.uuid4())]},
        ]
        begun = [(await clerk.post(EXPORTS, json=body)).json() for body in asked]
        results = [await library.handle(one["job_id"], org_id=org).wait(WAIT_TIMEOUT) for one in begun]
    assert [one.status for one in results] == ["completed"] * 3
    for job in begun:
        [file] = (await clerk.get(f"{job['status_url']}/artifacts")).json()["artifacts"]
        data = (await clerk.get(file["url"])).content
        assert hashlib.sha256(data).hexdigest() == file["sha256"]
        assert (b"offen.txt" in data, b"geheim" in data, b"Direktorin" in data) == (True, False, False)
    async with caller(api, await key_of(library, org, "jobs:read", "jobs:write")) as colleague:
        assert (await colleague.get(begun[0]["status_url"])).status_code == 404
        assert (await colleague.get(f"{begun[0]['status_url']}/artifacts")).status_code == 404


async def test_an_invalid_export_is_refused(http: httpx.AsyncClient) -> None:
    wrong: list[dict[str, Any]] = [
        {"format": "docx"},
        {"document_ids": []},
        {"filters": {}},
        {"query": "a", "node_id": str(uuid.uuid4())},
        {"query": "a", "filters": {"created_from": 1}},
        {"query": "a", "filters": {"folders": []}},
        {"bom": "yes"},
    ]
    for body in wrong:
        assert (await http.post(EXPORTS, json=body)).status_code == 422, body
