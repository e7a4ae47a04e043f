"""Uploads for jobs and artifacts of jobs, which a browser never renders as a page."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from duly import Context, Duly
from duly.blobs import BlobRef
from duly.http.options import HttpOptions
from tests.http.requests import check_looks_unknown
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
def store_files(app: Duly) -> None:
    """Declare a job that stores artifacts of many names and content types."""

    @app.job("files.store")
    async def store_files(ctx: Context, blob: str) -> None:
        data = await (await app.resources()).blobs.get(BlobRef.parse(blob), org_id=ctx.job.org_id)
        for name in NAMES:
            await ctx.artifact(name, data, content_type="text/html")
        for number, kind in enumerate(TYPES):
            await ctx.artifact(f"type-{number}", data, content_type=kind)
        await ctx.artifact("empty", b"")


@pytest.fixture
async def job_url(http: httpx.AsyncClient, app: Duly, org: uuid.UUID, store_files: None) -> str:
    """Run the job; return its status URL."""
    blob = (await http.post("/v1/blobs", content=PAGE)).json()["blob"]
    submitted = await http.post("/v1/jobs", json={"job_type": "files.store", "payload": {"blob": blob}})
    async with working(app):
        await app.handle(submitted.json()["job_id"], org_id=org).wait(WAIT_TIMEOUT)
    return str(submitted.json()["status_url"])


async def test_every_artifact_is_downloaded_by_its_url(http: httpx.AsyncClient, job_url: str) -> None:
    files = (await http.get(f"{job_url}/artifacts")).json()["artifacts"]
    assert {file["name"] for file in files} > {*NAMES, "empty"}
    for file in files:
        response = await http.get(file["url"])
        expected = b"" if file["name"] == "empty" else PAGE
        assert (response.status_code, response.content) == (200, expected), file["name"]
        assert int(response.headers["content-length"]) == file["size"] == len(expected)
        assert response.headers["etag"] == f'"{file["sha256"]}"'
    plain = await http.get(f"{job_url}/artifacts/2026/11/all of it.html")
    assert plain.content == PAGE


async def test_an_artifact_is_never_rendered_as_a_page(http: httpx.AsyncClient, job_url: str) -> None:
    for file in (await http.get(f"{job_url}/artifacts")).json()["artifacts"]:
        response = await http.get(file["url"])
        assert response.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
        assert response.headers["content-security-policy"] == "sandbox"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in response.headers
        assert response.headers["content-type"] in (*TYPES[:2], "application/octet-stream")


async def test_an_artifact_of_another_org_looks_unknown(
    http: httpx.AsyncClient, stranger: httpx.AsyncClient, job_url: str
) -> None:
    job_id = uuid.UUID(job_url.rpartition("/")[2])
    for path in ("/v1/jobs/{}/artifacts", "/v1/jobs/{}/artifacts/report.csv", "/v1/jobs/{}/artifacts/none"):
        await check_looks_unknown(stranger, "GET", path, job_id)
    for name in ("none", "", "x" * 501, "a%00b", "a%0Ab", "%FF"):
        response = await http.get(f"{job_url}/artifacts/{name}")
        assert response.status_code in (404, 422), name


async def test_a_deleted_artifact_is_not_found(http: httpx.AsyncClient, job_url: str, tmp_path: Path) -> None:
    for blob in (tmp_path / "blobs").rglob("*"):
        if blob.is_file():
            blob.unlink()
    response = await http.get(f"{job_url}/artifacts/report.csv")
    assert (response.status_code, response.json()["code"]) == (404, "artifact.unknown")


async def test_a_corrupted_artifact_is_not_delivered(
    http: httpx.AsyncClient, job_url: str, tmp_path: Path
) -> None:
    for blob in (tmp_path / "blobs").rglob("*"):
        if blob.is_file():
            blob.write_bytes(b"<" * len(blob.read_bytes()))
    response = await http.get(f"{job_url}/artifacts/report.csv")
    assert (response.status_code, response.json()["code"]) == (500, "duly.error")


async def test_uploads_have_their_own_limit(http: httpx.AsyncClient) -> None:
    first = await http.post("/v1/blobs", content=b"x" * 100_000)
    again = await http.post("/v1/blobs", content=b"x" * 100_000, headers={"content-type": "text/html"})
    assert (first.status_code, first.json()["size"], again.json()) == (201, 100_000, first.json())

    async def in_pieces() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b"x" * 10_000

    for content in (b"x" * 100_001, in_pieces()):
        response = await http.post("/v1/blobs", content=content)
        assert (response.status_code, response.json()["code"]) == (413, "request.too_large")
    other = await http.post("/v1/jobs", content=b" " * 1_001, headers={"content-type": "application/json"})
    assert other.status_code == 413
    empty = await http.post("/v1/blobs", content=b"")
    assert (empty.status_code, empty.json()["errors"][0]["field"]) == (422, "body")
