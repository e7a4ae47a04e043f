"""Invalid forms and bodies are refused with an explanation, and leave nothing behind."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from duly.http.problems import PATTERN_HINTS
from tests.apps.documents.http_requests import DOCUMENTS, send

FILE = ("a.txt", b"text")
PART = '--b\r\nContent-Disposition: form-data; name="{}"{}\r\n\r\n{}\r\n'
FORM = {"content-type": "multipart/form-data; boundary=b"}


WRONG: tuple[tuple[dict[str, Any], dict[str, Any], str], ...] = (
    ({"other": FILE}, {}, "file"),
    ({"file": ("a.txt", b"")}, {}, "file"),
    ({"file": ("..", b"text")}, {}, "name"),
    ({"file": FILE}, {"metadata": "no json"}, "metadata"),
    ({"file": FILE}, {"metadata": "[1]"}, "metadata"),
    ({"file": FILE}, {"metadata": '{"a": 1, "a": 2}'}, "metadata"),
    ({"file": FILE}, {"metadata": json.dumps({"a": "x" * 20_000})}, "metadata"),
    ({"file": FILE}, {"node_id": "here"}, "node_id"),
    ({"file": FILE}, {"engine": "magic"}, "engine"),
    ({"file": FILE}, {"document_id": str(uuid.uuid4()), "metadata": '{"a": 1}'}, "body"),
    ({"file": FILE}, {"folder": "x"}, "folder"),
    ({"file": FILE}, {"name": ["a", "b"]}, "name"),
)
HOSTILE: tuple[tuple[dict[str, str], str, int], ...] = (
    ({"content-type": "multipart/form-data"}, "--b--", 400),
    (FORM, "", 422),
    (FORM, "nothing of a form", 400),
    (FORM, PART.format("file", '; filename="a"', "text"), 422),
    (FORM, PART.format("file", "", "text") + "--b--", 422),
    (FORM, (PART.format("file", '; filename="a"', "x") * 2) + "--b--", 400),
    (FORM, "".join(PART.format(n, "", "") for n in range(10_000))[:90_000] + "--b--", 400),
    (FORM, PART.format("a", "", "x" * 70_000) + "--b--", 400),
    (FORM, PART.format("x" * 70_000, "", "a") + "--b--", 400),
    ({"content-type": "multipart/form-data; boundary=" + "b" * 10_000}, "--b", 400),
    ({"content-type": "application/x-www-form-urlencoded"}, "file=text", 415),
    ({"content-type": "application/json"}, "{}", 415),
    ({}, "text", 415),
)
NAMES = (
    ("../../etc/passwd", "passwd"),
    ("C:\\Users\\ada\\Brief.docx", "Brief.docx"),
    ("a\tb\x7f.txt", "a_b_.txt"),
    ("x" * 400 + ".pdf", "x" * 251 + ".pdf"),
)


async def test_an_invalid_form_is_refused_with_the_name_of_the_field(http: httpx.AsyncClient) -> None:
    for files, fields, field in WRONG:
        answer = await http.post(DOCUMENTS, files=files, data=fields)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field), fields
    assert (await http.get(DOCUMENTS)).json()["documents"] == []


# The file of a part that never ends is left to the collector of garbage.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_body_that_is_no_form_with_one_file_is_refused(http: httpx.AsyncClient) -> None:
    for headers, body, status in HOSTILE:
        answer = await http.post(DOCUMENTS, content=body, headers=headers)
        kind = answer.headers["content-type"]
        assert (answer.status_code, kind) == (status, "application/problem+json"), (headers, body[:100])
    assert (await http.get(DOCUMENTS)).json()["documents"] == []


async def test_a_name_is_no_path(http: httpx.AsyncClient, tmp_path: Path) -> None:
    sent = [await send(http, kept, "a.txt", name=given) for given, kept in NAMES]
    assert [one["document"]["name"] for one in sent] == [kept for _, kept in NAMES]
    files = {path.name for path in (tmp_path / "blobs").rglob("*") if path.is_file()}
    assert files == {one["document"]["sha256"] for one in sent}


async def _in_pieces(size: int) -> AsyncIterator[bytes]:
    for _ in range(size // 10_000):
        yield b"x" * 10_000


async def test_a_file_that_is_too_large_is_refused_with_a_hint_to_uploads(http: httpx.AsyncClient) -> None:
    where = f"{DOCUMENTS}/{(await send(http, 'text'))['document']['document_id']}"
    large = {"file": ("a.txt", b"x" * 100_000)}
    answers = [
        await http.post(DOCUMENTS, files=large),
        await http.put(f"{where}/content", content=b"x" * 100_001),
        await http.put(f"{where}/content", content=_in_pieces(110_000)),
    ]
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (413, "request.too_large")
        assert "POST /v1/documents/uploads" in answer.json()["detail"]
    assert (await http.patch(where, json={"name": "x" * 21_000})).status_code == 413
    assert (await http.put(f"{where}/content", content=_in_pieces(100_000))).status_code == 201


async def test_a_body_of_bytes_is_no_form_and_not_empty(http: httpx.AsyncClient) -> None:
    where = f"{DOCUMENTS}/{(await send(http, 'text'))['document']['document_id']}/content"
    assert (await http.put(where, files={"file": FILE})).status_code == 415
    assert (await http.put(where, content=b"")).json()["errors"][0]["field"] == "file"


def _patterns(part: Any) -> Iterator[str]:
    inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for one in inside:
        yield from _patterns(one)
    if isinstance(part, dict) and isinstance(part.get("pattern"), str):
        yield part["pattern"]


async def test_invalid_fields_are_explained(api: FastAPI, http: httpx.AsyncClient) -> None:
    assert {*_patterns(api.openapi())} <= {*PATTERN_HINTS}
    refused = (await http.post(f"{DOCUMENTS}/uploads", json={"sha256": "x", "size": 1})).json()["errors"]
    assert [(one["field"], one["message"], one["fix"]) for one in refused] == [
        ("sha256", "not in the expected format", "send 64 hex digits in lower case")
    ]
