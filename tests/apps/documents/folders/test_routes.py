"""Folders over HTTP: a hidden folder is not found by any route."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from duly import Duly
from tests.apps.documents.http_requests import DOCUMENTS, folder, id_of, send
from tests.worker.working import WAIT_TIMEOUT, working

FOLDERS = f"{DOCUMENTS}/folders"


async def _close(http: httpx.AsyncClient, node_id: str, **levels: str) -> None:
    grants = [{"principal": who, "level": level} for who, level in {"user:eve": "read", **levels}.items()]
    answer = await http.put(f"{FOLDERS}/{node_id}/grants", json={"grants": grants, "reason": "personal"})
    assert answer.status_code == 200, answer.text


async def test_folders_are_made_moved_and_removed(http: httpx.AsyncClient) -> None:
    contracts = await folder(http, "Verträge")
    year = await folder(http, "2026", parent_id=contracts)
    paths = [one["path"] for one in (await http.get(FOLDERS)).json()["folders"]]
    assert paths == ["Verträge", "Verträge/2026"]
    taken = await http.post(FOLDERS, json={"name": "2026", "parent_id": contracts})
    assert (taken.status_code, taken.json()["code"]) == (409, "folder.name_taken")
    full = await http.delete(f"{FOLDERS}/{contracts}", params={"reason": "old"})
    assert (full.status_code, full.json()["code"]) == (409, "folder.not_empty")
    moved = (await http.patch(f"{FOLDERS}/{year}", json={"parent_id": None, "name": "2027"})).json()
    assert (moved["path"], moved["parent_id"]) == ("2027", None)
    itself = await http.patch(f"{FOLDERS}/{contracts}", json={"parent_id": contracts})
    assert itself.status_code == 422
    assert (await http.delete(f"{FOLDERS}/{contracts}", params={"reason": "old"})).status_code == 204
    assert (await http.get(f"{FOLDERS}/{contracts}")).json()["code"] == "folder.unknown"
    assert (await http.patch(f"{FOLDERS}/{year}", json={})).status_code == 422


async def test_grants_are_changed_by_principals_that_manage_the_folder(
    http: httpx.AsyncClient, clerk: httpx.AsyncClient, clerk_key: str
) -> None:
    node_id = await folder(http, "Personal")
    await _close(http, node_id, **{id_of(clerk_key): "write"})
    where = f"{FOLDERS}/{node_id}/grants"
    assert len((await clerk.get(where)).json()["grants"]) == 2
    refused = await clerk.put(where, json={"grants": []})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (403, "node_id")
    await _close(http, node_id, **{id_of(clerk_key): "manage"})
    assert (await clerk.put(where, json={"grants": []})).json() == {"grants": []}
    wrong: list[dict[str, object]] = [
        {"grants": [{"principal": "eve", "level": "read"}]},
        {"grants": [{"principal": "user:eve", "level": "own"}]},
        {"grants": [{"principal": "user:eve", "level": "read", "more": 1}]},
        {"grants": [{"principal": "user:eve", "level": "read"}] * 2},
    ]
    for body in wrong:
        assert (await http.put(where, json=body)).status_code == 422, body


@pytest.fixture
async def closed(http: httpx.AsyncClient, library: Duly, org: uuid.UUID) -> dict[str, str]:
    """A folder that is not for clerks, with a document that was read."""
    node_id = await folder(http, "Personal")
    await _close(http, node_id)
    sent = await send(http, "Gehalt von Ada", node_id=node_id, engine="fast")
    async with working(library):
        ended = await library.handle(sent["job_id"], org_id=org).wait(WAIT_TIMEOUT)
    ids = {"document_id": sent["document"]["document_id"], "job_id": sent["job_id"], "node_id": node_id}
    return {**ids, "result_id": str(ended.result_id)}


async def test_a_document_in_a_hidden_folder_is_reported_as_unknown(
    http: httpx.AsyncClient, clerk: httpx.AsyncClient, closed: dict[str, str]
) -> None:
    where = f"{DOCUMENTS}/{closed['document_id']}"
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", where, {}),
        ("GET", f"{where}/content", {}),
        ("GET", f"{where}/elements", {}),
        ("GET", f"{where}/versions", {}),
        ("GET", f"{where}/extractions", {}),
        ("GET", f"{where}/classification", {}),
        ("PATCH", where, {"json": {"name": "x"}}),
        ("PUT", f"{where}/content", {"content": b"x"}),
        ("PUT", f"{where}/doc_type", {"json": {"doc_type": "letter"}}),
        ("POST", f"{where}/extractions", {"json": {}}),
        ("POST", f"{where}/classification", {}),
        ("DELETE", f"{where}?reason=r", {}),
        ("GET", f"{FOLDERS}/{closed['node_id']}", {}),
        ("GET", f"{FOLDERS}/{closed['node_id']}/grants", {}),
        ("PUT", f"{FOLDERS}/{closed['node_id']}/grants", {"json": {"grants": []}}),
    ]
    for method, url, body in asked:
        answers = [
            await clerk.request(method, url.replace(one, said), **body)
            for one in (closed["document_id"], closed["node_id"])
            if one in url
            for said in (one, str(uuid.uuid4()))
        ]
        looks = [{**answer.json(), "request_id": ""} for answer in answers]
        assert [answer.status_code for answer in answers] == [404, 404], (method, url)
        assert looks[0] == looks[1]
    for body in ({"node_id": closed["node_id"]}, {"document_id": closed["document_id"]}):
        answer = await clerk.post(DOCUMENTS, files={"file": ("a.txt", b"x")}, data=body)
        assert answer.status_code == 404, body
    assert (await clerk.get(DOCUMENTS)).json()["documents"] == []
    assert (await clerk.get(FOLDERS)).json()["folders"] == []
    assert (await http.get(where)).json()["name"] == "brief.txt"


async def test_jobs_about_a_hidden_document_are_hidden(
    http: httpx.AsyncClient, clerk: httpx.AsyncClient, closed: dict[str, str]
) -> None:
    paths = [f"/v1/jobs/{closed['job_id']}{more}" for more in ("", "/events", "/artifacts")]
    for path in [*paths, f"/v1/results/{closed['result_id']}"]:
        assert ((await http.get(path)).status_code, (await clerk.get(path)).status_code) == (200, 404), path
    assert (await clerk.get("/v1/jobs")).json()["jobs"] == []
    about = {"job_type": "extract_document", "payload": {"document_id": closed["document_id"]}}
    subject = {"subject_id": f"document:{closed['document_id']}"}
    assert (await clerk.post("/v1/jobs", json={**about, **subject})).status_code == 403


async def test_a_job_enqueued_without_a_subject_gets_that_of_its_document(
    http: httpx.AsyncClient, clerk: httpx.AsyncClient, closed: dict[str, str], library: Duly, org: uuid.UUID
) -> None:
    async def ask(client: httpx.AsyncClient, engine: str, **more: str) -> str:
        payload = {"document_id": closed["document_id"], "engine": engine}
        asked = {"job_type": "extract_document", "payload": payload, **more}
        return str((await client.post("/v1/jobs", json=asked)).json()["job_id"])

    jobs = {
        await ask(http, "fast"): None,
        await ask(http, "fast", subject_id="of everybody"): "document.subject_missing",
        await ask(clerk, "hires"): "document.unknown",
    }
    async with working(library):
        for job_id, code in jobs.items():
            assert (await library.handle(job_id, org_id=org).wait(WAIT_TIMEOUT)).error_code == code
    seen = [(await clerk.get(f"/v1/jobs/{job_id}")).status_code for job_id in jobs]
    assert seen == [404, 200, 404]


async def test_read_access_does_not_allow_changes(
    http: httpx.AsyncClient, clerk: httpx.AsyncClient, clerk_key: str, closed: dict[str, str]
) -> None:
    await _close(http, closed["node_id"], **{id_of(clerk_key): "read"})
    where = f"{DOCUMENTS}/{closed['document_id']}"
    assert (await clerk.get(f"{where}/content")).content == b"Gehalt von Ada"
    for answer in (
        await clerk.patch(where, json={"name": "x"}),
        await clerk.post(f"{where}/extractions", json={}),
        await clerk.delete(where, params={"reason": "r"}),
        await clerk.post(DOCUMENTS, files={"file": ("a.txt", b"x")}, data={"node_id": closed["node_id"]}),
    ):
        assert answer.status_code == 403
