"""Documents over HTTP: add, list, change, extract, download and delete."""

from __future__ import annotations

import uuid

import httpx
import psycopg
from fastapi import FastAPI

from duly import Duly
from tests.apps.documents.files import pdf
from tests.apps.documents.http_requests import DOCUMENTS, folder, send
from tests.http.conftest import caller, key_of
from tests.worker.working import WAIT_TIMEOUT, working


async def test_a_file_is_sent_once_and_gets_versions(http: httpx.AsyncClient) -> None:
    first = await send(http, "Sehr geehrte Frau Ada", metadata='{"year": 2026}')
    where = f"{DOCUMENTS}/{first['document']['document_id']}"
    assert (first["status"], first["created"], first["version"], first["job_id"]) == (201, True, 1, None)
    assert first["document"]["metadata"] == {"year": 2026}
    again = await send(http, "Sehr geehrte Frau Ada", "another name.txt")
    assert (again["status"], again["created"], again["document"]) == (200, False, first["document"])
    second = await send(http, "two", "brief-2.txt", document_id=first["document"]["document_id"])
    third = await http.put(f"{where}/content", params={"engine": "none"}, content=b"three")
    same = await http.put(f"{where}/content", params={"engine": "none"}, content=b"three")
    assert (second["status"], second["version"], third.status_code, same.status_code) == (201, 2, 201, 200)
    assert third.headers["location"] == where
    page = (await http.get(f"{where}/versions", params={"limit": 2})).json()
    rest = (await http.get(f"{where}/versions", params={"limit": 2, "after": page["after"]})).json()
    assert rest["after"] is None
    found = page["versions"] + rest["versions"]
    assert [(one["version"], one["file_name"]) for one in found] == [
        (3, "brief.txt"), (2, "brief-2.txt"), (1, "brief.txt"),
    ]  # fmt: skip


async def test_a_download_is_the_uploaded_file_and_never_rendered(http: httpx.AsyncClient) -> None:
    page = b"<html><script>alert(document.domain)</script>"
    sent = await send(http, page, "Müll & more.html")
    where = f"{DOCUMENTS}/{sent['document']['document_id']}"
    answer = await http.get(f"{where}/content")
    assert (answer.status_code, answer.content) == (200, page)
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''M%C3%BCll%20%26%20more.html"
    assert answer.headers["content-security-policy"] == "sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-type"] == "text/html"
    assert answer.headers["etag"] == f'"{sent["document"]["sha256"]}"'
    for wrong, code in ((2, 404), (0, 422), ("x", 422)):
        assert (await http.get(f"{where}/content", params={"version": wrong})).status_code == code


async def test_documents_are_listed_by_folder_and_in_pages(http: httpx.AsyncClient) -> None:
    node_id = await folder(http, "Verträge")
    inside = await send(http, "inside", node_id=node_id)
    outside = [await send(http, f"outside {n}") for n in range(2)]
    ids = [one["document"]["document_id"] for one in (*reversed(outside), inside)]

    async def listed(**params: object) -> list[str]:
        answer = await http.get(DOCUMENTS, params=params)  # type: ignore[arg-type]
        return [one["document_id"] for one in answer.json()["documents"]]

    assert await listed() == ids
    assert await listed(node_id=node_id) == ids[2:]
    assert await listed(in_root=True) == ids[:2]
    assert await listed(status="extracted") == await listed(doc_type="invoice") == []
    page = (await http.get(DOCUMENTS, params={"limit": 2})).json()
    assert await listed(limit=2, after=page["after"]) == ids[2:]
    for wrong in ({"limit": 0}, {"after": "x"}, {"status": "lost"}, {"doc_type": "a\0"}, {"nodes": "1"}):
        assert (await http.get(DOCUMENTS, params=wrong)).status_code == 422, wrong


async def test_a_document_is_renamed_moved_and_deleted_for_a_reason(
    http: httpx.AsyncClient, sql: psycopg.Connection
) -> None:
    node_id = await folder(http, "Verträge")
    where = f"{DOCUMENTS}/{(await send(http, 'text'))['document']['document_id']}"
    moved = (await http.patch(where, json={"node_id": node_id, "name": "b.txt", "metadata": {"a": 1}})).json()
    assert (moved["node_id"], moved["name"], moved["metadata"]) == (node_id, "b.txt", {"a": 1})
    kept = (await http.patch(where, json={"name": "c.txt"})).json()
    assert (kept["node_id"], kept["name"], kept["metadata"]) == (node_id, "c.txt", {"a": 1})
    assert (await http.patch(where, json={"node_id": None})).json()["node_id"] is None
    for wrong in ({}, {"nmae": "x"}, {"name": ""}, {"metadata": {"password": "hunter2-hunter2"}}):
        assert (await http.patch(where, json=wrong)).status_code == 422, wrong
    assert (await http.patch(where, json={"node_id": str(uuid.uuid4())})).status_code == 404
    assert (await http.delete(where)).status_code == 422
    assert (await http.delete(where, params={"reason": "asked for"})).status_code == 204
    assert (await http.get(where)).status_code == 404
    query = "select reason from duly.audit_entries where action = 'document.deleted'"
    assert sql.execute(query).fetchall() == [("asked for",)]


async def test_a_job_extracts_a_document_and_its_text_is_returned(
    http: httpx.AsyncClient, library: Duly, org: uuid.UUID
) -> None:
    sent = await send(http, pdf(["Rechnung Nummer 17", "Seite zwei"]), "rechnung.pdf", engine="fast")
    where = f"{DOCUMENTS}/{sent['document']['document_id']}"
    assert (await http.get(f"{where}/elements")).json()["code"] == "document.no_file"
    running = await http.post(f"{where}/extractions", json={"engine": "fast"})
    assert (running.status_code, running.json()["job_id"]) == (202, sent["job_id"])
    assert running.headers["idempotency-replayed"] == "true"
    async with working(library):
        await library.handle(sent["job_id"], org_id=org).wait(WAIT_TIMEOUT)
    elements = (await http.get(f"{where}/elements")).json()
    assert [page["number"] for page in elements["pages"]] == [1, 2]
    assert "Rechnung Nummer 17" in str(elements["pages"][0])
    [extraction] = (await http.get(f"{where}/extractions")).json()["extractions"]
    assert (extraction["status"], extraction["extraction_id"]) == ("done", elements["extraction_id"])
    assert (await http.get(where)).json()["status"] == "extracted"
    status = (await http.get(f"/v1/jobs/{sent['job_id']}")).json()
    assert (status["status"], status["partial_count"]) == ("completed", 2)


async def test_remote_engines_are_refused_when_a_file_is_added(
    http: httpx.AsyncClient,
) -> None:
    where = f"{DOCUMENTS}/{(await send(http, 'text'))['document']['document_id']}"
    for body in ({"engine": "magic"}, {"consent": "yes"}, {"engines": "fast"}):
        assert (await http.post(f"{where}/extractions", json=body)).status_code == 422
    answer = await http.post(DOCUMENTS, files={"file": ("a.txt", b"a")}, data={"engine": "unstructured_fast"})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "engine")


async def test_a_reader_cannot_change_anything(
    http: httpx.AsyncClient, library: Duly, api: FastAPI, org: uuid.UUID
) -> None:
    where = f"{DOCUMENTS}/{(await send(http, 'text'))['document']['document_id']}"
    async with caller(api, await key_of(library, org, "jobs:read")) as viewer:
        assert (await viewer.get(where)).status_code == 200
        for method, path in (("DELETE", where), ("PUT", f"{where}/content"), ("POST", DOCUMENTS)):
            assert (await viewer.request(method, path, content=b"x")).status_code == 403
