"""Uploads in parts over HTTP: interrupted, resumed, verified against their hash."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.requests import ClientDisconnect

from tests.apps.documents.http_requests import DOCUMENTS, send

UPLOADS = f"{DOCUMENTS}/uploads"


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duly.apps.documents.uploads.service.PART_SIZE", 1_000)


def _announced(data: bytes) -> dict[str, object]:
    return {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


async def test_an_interrupted_upload_resumes(http: httpx.AsyncClient, clerk: httpx.AsyncClient) -> None:
    data = b"%PDF-1.7 " + bytes(range(256)) * 9
    begun = await http.post(UPLOADS, json=_announced(data))
    where, parts = begun.headers["location"], begun.json()["parts"]
    assert (begun.status_code, parts, begun.json()["missing"]) == (201, 3, [1, 2, 3])
    assert (await http.put(f"{where}/parts/3", content=data[2_000:])).json()["received"] == [3]

    async def broken() -> AsyncIterator[bytes]:
        yield data[:500]
        raise ClientDisconnect

    assert (await http.put(f"{where}/parts/1", content=broken())).status_code == 400
    [under_way] = (await http.get(UPLOADS)).json()["uploads"]
    assert (under_way["upload_id"], under_way["received"]) == (begun.json()["upload_id"], 1)
    assert (await clerk.get(UPLOADS)).json() == {"uploads": []}, "nobody sees another's"
    assert (await http.get(where)).json()["received"] == [3]
    early = await http.post(f"{where}/finish", json={"name": "a.pdf"})
    assert (early.status_code, early.json()["code"]) == (409, "upload.incomplete")
    again = (await http.post(UPLOADS, json=_announced(data))).json()
    assert (again["upload_id"], again["missing"]) == (begun.json()["upload_id"], [1, 2])
    for part in again["missing"]:
        start = (part - 1) * again["part_size"]
        await http.put(f"{where}/parts/{part}", content=data[start : start + again["part_size"]])
    done = await http.post(f"{where}/finish", json={"name": "a.pdf", "metadata": {"a": 1}, "engine": "none"})
    assert (done.status_code, done.json()["document"]["sha256"]) == (201, _announced(data)["sha256"])
    assert done.json()["document"]["metadata"] == {"a": 1}
    assert (await http.get(where)).json()["code"] == "upload.unknown"
    there = await http.post(UPLOADS, json=_announced(data))
    assert (there.status_code, there.json()["upload_id"]) == (200, None)
    assert there.json()["document_id"] == done.json()["document"]["document_id"]


async def test_a_file_that_is_not_the_announced_one_is_not_filed(http: httpx.AsyncClient) -> None:
    where = (await http.post(UPLOADS, json=_announced(b"a" * 100))).headers["location"]
    for part, content, status in ((1, b"a" * 99, 422), (2, b"a", 422), (1, b"b" * 101, 422), (0, b"a", 422)):
        assert (await http.put(f"{where}/parts/{part}", content=content)).status_code == status
    assert (await http.put(f"{where}/parts/1", content=b"b" * 100)).status_code == 200
    assert (await http.post(f"{where}/finish", json={"name": "a"})).json()["code"] == "upload.incomplete"
    assert (await http.get(DOCUMENTS)).json()["documents"] == []


async def test_an_invalid_upload_is_refused(http: httpx.AsyncClient) -> None:
    wrong: list[dict[str, object]] = [{"sha256": "A" * 64}, {"size": 0}, {"size": 2**40}, {"size": "1"}]
    for one in wrong:
        answer = await http.post(UPLOADS, json={**_announced(b"a"), **one})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, next(iter(one)))


async def test_an_upload_is_visible_to_its_principal_only(
    http: httpx.AsyncClient, clerk: httpx.AsyncClient
) -> None:
    where = (await http.post(UPLOADS, json=_announced(b"a"))).headers["location"]
    nobody = f"{UPLOADS}/{uuid.uuid4()}"
    for place in (where, nobody):
        assert (await clerk.get(place)).json()["code"] == "upload.unknown"
        assert (await clerk.put(f"{place}/parts/1", content=b"a")).status_code == 404
        assert (await clerk.post(f"{place}/finish", json={"name": "a"})).status_code == 404
        assert (await clerk.delete(place)).status_code == 404
    assert (await http.delete(where)).status_code == 204
    assert (await http.delete(where)).status_code == 404


async def test_the_hash_of_a_file_in_a_hidden_folder_reveals_nothing(
    http: httpx.AsyncClient, clerk: httpx.AsyncClient
) -> None:
    made = await http.post(f"{DOCUMENTS}/folders", json={"name": "Personal"})
    node_id = made.json()["node_id"]
    grants = {"grants": [{"principal": "user:eve", "level": "read"}]}
    assert (await http.put(f"{DOCUMENTS}/folders/{node_id}/grants", json=grants)).status_code == 200
    await send(http, "secret", node_id=node_id)
    begun = await clerk.post(UPLOADS, json=_announced(b"secret"))
    assert (begun.status_code, begun.json()["document_id"]) == (201, None)
