"""Search over HTTP: found, shown, filtered, paged; nothing that is closed, whatever is asked."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from duly import Duly
from tests.apps.documents.files import pdf
from tests.apps.documents.http_requests import DOCUMENTS, folder, send
from tests.worker.working import WAIT_TIMEOUT, working

SEARCH = f"{DOCUMENTS}/search"
PAGES = pdf(["Rechnung vom Mai", "Mietvertrag und Hausordnung"])
LETTER = "Die Kündigung des Mietvertrags <b>erreichte</b> uns am Montag."


@pytest.fixture
async def ids(http: httpx.AsyncClient, library: Duly, org: uuid.UUID) -> dict[str, str]:
    """Some documents that were read: one in a folder, one in a closed folder."""
    open_id, closed_id = await folder(http, "Offen"), await folder(http, "Personal")
    grants = {"grants": [{"principal": "user:eve", "level": "read"}]}
    await http.put(f"{DOCUMENTS}/folders/{closed_id}/grants", json=grants)
    sent = {
        "letter": await send(http, LETTER, "brief.txt", engine="fast", node_id=open_id),
        "pages": await send(http, PAGES, "a.pdf", engine="fast", metadata='{"year": 2026}'),
        "closed": await send(
            http, "Mietvertrag der Direktorin", "geheim.txt", engine="fast", node_id=closed_id
        ),
    }
    async with working(library):
        for one in sent.values():
            await library.handle(one["job_id"], org_id=org).wait(WAIT_TIMEOUT)
    return {name: one["document"]["document_id"] for name, one in sent.items()} | {"folder": open_id}


async def test_passages_are_found_shown_filtered_and_paged(
    http: httpx.AsyncClient, clerk: httpx.AsyncClient, stranger: httpx.AsyncClient, ids: dict[str, str]
) -> None:
    async def found(client: httpx.AsyncClient, **params: Any) -> dict[str, Any]:
        answer = await client.get(SEARCH, params=params)
        assert answer.status_code == 200, answer.text
        return {**answer.json(), "ids": {hit["document_id"] for hit in answer.json()["hits"]}}

    every = await found(http, q="Mietvertrag")
    assert (every["ids"], every["total"]) == ({ids["letter"], ids["pages"], ids["closed"]}, 3)
    seen = await found(clerk, q="Mietvertrag")
    assert (seen["ids"], seen["total"]) == ({ids["letter"], ids["pages"]}, 2)
    assert "Direktorin" not in str(seen)
    assert (await found(stranger, q="Mietvertrag"))["hits"] == []
    [hit] = (await found(clerk, q="Kündigung"))["hits"]
    pieces = [piece for fragment in hit["fragments"] for piece in fragment]
    assert [piece["text"] for piece in pieces if piece["hit"]] == ["Kündigung"]
    assert "<b>erreichte</b>" in "".join(piece["text"] for piece in pieces), "text, never markup"
    slip = await found(clerk, q="Mnotag")
    assert (slip["ids"], slip["corrected"]) == ({ids["letter"]}, {"Mnotag": ["Montag"]})
    assert (await found(clerk, q="Mietvertrag", node_id=ids["folder"]))["ids"] == {ids["letter"]}
    assert (await found(clerk, q="Mietvertrag", page_from=2))["ids"] == {ids["pages"]}
    assert (await found(clerk, q="Mietvertrag", metadata='{"year": 2026}'))["ids"] == {ids["pages"]}
    assert (await found(clerk, q="Mietvertrag", created_to="2020-01-01T00:00:00Z"))["hits"] == []
    both = {"document_id": [ids["letter"], ids["pages"]], "group": True, "limit": 1}
    first = await found(clerk, q="Mietvertrag", **both)
    second = await found(clerk, q="Mietvertrag", **both, offset=1)
    assert (first["more"], second["more"], first["ids"] | second["ids"]) == (True, False, seen["ids"])


async def test_what_is_no_query_is_refused(http: httpx.AsyncClient) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "q"),
        ({"q": ""}, "q"),
        ({"q": "?!"}, "q"),
        ({"q": "-nothing"}, "q"),
        ({"q": "a\0b"}, "q"),
        ({"q": "x" * 501}, "q"),
        ({"q": "a", "limit": 101}, "limit"),
        ({"q": "a", "offset": -1}, "offset"),
        ({"q": "a", "offset": 10**6}, "offset"),
        ({"q": "a", "page_from": 0}, "page_from"),
        ({"q": "a", "doc_type": "a b"}, "doc_type.0"),
        ({"q": "a", "metadata": "[1]"}, "metadata"),
        ({"q": "a", "metadata": '{"a": "\\u0000"}'}, "metadata"),
        ({"q": "a", "created_from": "1"}, "created_from"),
        ({"q": "a", "nodes": str(uuid.uuid4())}, "nodes"),
    ]
    for params, field in wrong:
        answer = await http.get(SEARCH, params=params)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field), params
