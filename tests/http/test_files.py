"""Files go up for jobs and come down from them, as what they are and never as a page of ours."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from duly import Context, Duly
from duly.blobs import BlobRef
from duly.http.options import HttpOptions
from tests.http.requests import check_blind
from tests.worker.working import WAIT_TIMEOUT, working

PAGE = b"<script>alert(document.domain)</script>"
NAMES = (
    "report.csv",
    "Bericht für März.csv",
    "2026/11/all of it.html",
    "a//b/../c",
    "100% ?#&;+\"'<b>.svg",
    "日本\tset-cookie: a=b",
    "x" * 500,
)
TYPES = ("text/html", "image/svg+xml; charset=utf-8", "text/html\r\nset-cookie: a=b", "text/ümläut", "")


@pytest.fixture
def options() -> HttpOptions:
    return HttpOptions(upload_max=100_000, body_max=1_000)


@pytest.fixture
def leave(app: Duly) -> None:
    """A job that leaves files of all names and of all types."""

    @app.job("files.leave")
    async def leave(ctx: Context, blob: str) -> None:
        data = await (await app.resources()).blobs.get(BlobRef.parse(blob), org_id=ctx.job.org_id)
        for name in NAMES:
            await ctx.artifact(name, data, content_type="text/html")
        for number, kind in enumerate(TYPES):
            await ctx.artifact(f"type-{number}", data, content_type=kind)
        await ctx.artifact("empty", b"")


@pytest.fixture
async def place(http: httpx.AsyncClient, app: Duly, org: uuid.UUID, leave: None) -> str:
    """Where a job is that has left its files."""
    blob = (await http.post("/v1/blobs", content=PAGE)).json()["blob"]
    said = await http.post("/v1/jobs", json={"job_type": "files.leave", "payload": {"blob": blob}})
    async with working(app):
        await app.handle(said.json()["job_id"], org_id=org).wait(WAIT_TIMEOUT)
    return str(said.json()["status_url"])


async def test_every_file_is_found_by_its_link(http: httpx.AsyncClient, place: str) -> None:
    files = (await http.get(f"{place}/artifacts")).json()["artifacts"]
    assert {file["name"] for file in files} > {*NAMES, "empty"}
    for file in files:
        answer = await http.get(file["url"])
        expected = b"" if file["name"] == "empty" else PAGE
        assert (answer.status_code, answer.content) == (200, expected), file["name"]
        assert int(answer.headers["content-length"]) == file["size"] == len(expected)
        assert answer.headers["etag"] == f'"{file["sha256"]}"'
    plain = await http.get(f"{place}/artifacts/2026/11/all of it.html")
    assert plain.content == PAGE


async def test_an_artifact_is_never_rendered_as_a_page(http: httpx.AsyncClient, place: str) -> None:
    for file in (await http.get(f"{place}/artifacts")).json()["artifacts"]:
        answer = await http.get(file["url"])
        assert answer.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
        assert answer.headers["content-security-policy"] == "sandbox"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in answer.headers
        assert answer.headers["content-type"] in (*TYPES[:2], "application/octet-stream")


async def test_an_artifact_of_another_org_looks_unknown(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient, place: str
) -> None:
    job_id = uuid.UUID(place.rpartition("/")[2])
    for path in ("/v1/jobs/{}/artifacts", "/v1/jobs/{}/artifacts/report.csv", "/v1/jobs/{}/artifacts/none"):
        await check_blind(stranger, "GET", path, job_id)
    for name in ("none", "", "x" * 501, "a%00b", "a%0Ab", "%FF"):
        answer = await http.get(f"{place}/artifacts/{name}")
        assert answer.status_code in (404, 422), name


async def test_a_deleted_artifact_is_not_found(http: httpx.AsyncClient, place: str, tmp_path: Path) -> None:
    for kept in (tmp_path / "blobs").rglob("*"):
        if kept.is_file():
            kept.unlink()
    answer = await http.get(f"{place}/artifacts/report.csv")
    assert (answer.status_code, answer.json()["code"]) == (404, "artifact.unknown")


async def test_a_corrupted_artifact_is_not_delivered(
    http: httpx.AsyncClient, place: str, tmp_path: Path
) -> None:
    for kept in (tmp_path / "blobs").rglob("*"):
        if kept.is_file():
            kept.write_bytes(b"<" * len(kept.read_bytes()))
    answer = await http.get(f"{place}/artifacts/report.csv")
    assert (answer.status_code, answer.json()["code"]) == (500, "duly.error")


async def test_uploads_have_their_own_limit(http: httpx.AsyncClient) -> None:
    first = await http.post("/v1/blobs", content=b"x" * 100_000)
    again = await http.post("/v1/blobs", content=b"x" * 100_000, headers={"content-type": "text/html"})
    assert (first.status_code, first.json()["size"], again.json()) == (201, 100_000, first.json())

    async def in_pieces() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b"x" * 10_000

    for content in (b"x" * 100_001, in_pieces()):
        answer = await http.post("/v1/blobs", content=content)
        assert (answer.status_code, answer.json()["code"]) == (413, "request.too_large")
    other = await http.post("/v1/jobs", content=b" " * 1_001, headers={"content-type": "application/json"})
    assert other.status_code == 413
    empty = await http.post("/v1/blobs", content=b"")
    assert (empty.status_code, empty.json()["errors"][0]["field"]) == (422, "body")
