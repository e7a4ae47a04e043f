"""Exports by a worker: every format, only visible documents, resumed after a crash."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import io
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pypdfium2
import pytest

from duly import Duly, Outcome
from duly.apps.documents.elements import Passage
from duly.apps.documents.exports import plan as planning
from duly.apps.documents.exports.job import declare
from duly.apps.documents.exports.models import ExportBatch
from duly.apps.documents.exports.pdf import font
from duly.apps.documents.exports.service import Exports
from duly.apps.documents.exports.writer import ExportWriter, WrittenFile
from duly.apps.documents.library.file_store import FileStore
from duly.apps.documents.search.index import publish
from duly.apps.documents.search.models import Filters
from duly.blobs import BlobStore
from tests.apps.documents.classification.stored_documents import Sql, folder, put, visitor
from tests.apps.documents.exports.test_file_formats import pdf
from tests.worker.working import (
    WAIT_TIMEOUT,
    lose_all_workers,
    run_until_ended,
    seconds,
    silent_worker,
    working,
)


@pytest.fixture
def exports(app: Duly) -> Exports:
    declare(app)
    return Exports(app)


async def _file(app: Duly, sql: Sql, org: uuid.UUID, document_id: uuid.UUID, data: bytes, kind: str) -> None:
    """Give a document a file."""

    async def chunks() -> AsyncIterator[bytes]:
        yield data

    blobs: BlobStore = (await app.resources()).blobs
    kept = await FileStore(blobs, org).save_original(chunks())
    sql.execute(
        "update documents.documents set sha256 = %s, size = %s, media_type = %s, page_count = 2"
        " where document_id = %s",
        [kept.sha256, kept.size, kind, document_id],
    )


def _table(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))


async def test_documents_are_exported_as_csv_as_far_as_they_are_visible(
    app: Duly, acting: uuid.UUID, sql: Sql, exports: Exports
) -> None:
    closed, below = folder(sql, acting, "Vorstand", only_for="user:boss"), folder(sql, acting, "Büro")
    put(sql, acting, ["geheim"], name="geheim.pdf", node=closed)
    put(sql, acting, ["offen"], name="=HYPERLINK(1).pdf", node=below)
    put(sql, acting, ["frei"], name="frei.pdf")
    other = uuid.uuid4()
    sql.execute("insert into duly.organizations (org_id, name) values (%s, 'Other')", [other])
    foreign = put(sql, other, ["fremd"], name="fremd.pdf")
    async with working(app):
        handle = await exports.documents(visitor(acting), bom=True)
        made = await handle.result(WAIT_TIMEOUT)
        boss = await (await exports.documents(visitor(acting, "boss"))).result(WAIT_TIMEOUT)
        in_folder = await (await exports.documents(visitor(acting), node_id=below)).result(WAIT_TIMEOUT)
        asked = await exports.documents(visitor(acting), document_ids=[foreign, uuid.uuid4()])
        nothing = await asked.result(WAIT_TIMEOUT)
        plain = app.registry.get("export_documents")
        public = await (await plain.options(subject_id="everybody").enqueue()).wait(WAIT_TIMEOUT)
    assert (made.format, made.documents, made.rows, made.left_out) == ("csv", 2, 2, 0)
    [file] = made.artifacts
    data = await handle.read(file.name)
    assert (file.name, file.size, file.sha256) == (
        "documents.csv",
        len(data),
        hashlib.sha256(data).hexdigest(),
    )
    rows = _table(data)
    assert {row["name"]: row["folder"] for row in rows} == {"'=HYPERLINK(1).pdf": "Büro", "frei.pdf": ""}
    assert (boss.documents, in_folder.documents) == (3, 1)
    assert (nothing.documents, nothing.left_out, nothing.artifacts) == (0, 2, [])
    assert (public.outcome, public.error_code) == (Outcome.FAILED, "document.subject_missing")


async def test_documents_are_exported_as_jsonl_with_their_text(
    app: Duly, acting: uuid.UUID, sql: Sql, exports: Exports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(planning._MAX_FILE_WEIGHT, "jsonl", 2)  # so that it takes two files
    ids = {put(sql, acting, [f"Seite {n} ä", "zwei"], name=f"{n}.pdf") for n in range(3)}
    async with working(app):
        handle = await exports.documents(visitor(acting), format="jsonl", document_ids=list(ids))
        made = await handle.result(WAIT_TIMEOUT)
    assert [file.name for file in made.artifacts] == ["documents-0001.jsonl", "documents-0002.jsonl"]
    lines = [
        json.loads(line) for file in made.artifacts for line in (await handle.read(file.name)).splitlines()
    ]
    assert {line["document_id"] for line in lines} == {str(one) for one in ids}
    assert all([chunk["page"] for chunk in line["chunks"]] == [1, 2] for line in lines)
    assert {line["chunks"][0]["text"] for line in lines} == {f"Seite {n} ä" for n in range(3)}
    assert (made.documents, made.rows) == (3, 3)


async def test_documents_are_exported_as_pdf_with_images_and_text(
    app: Duly, acting: uuid.UUID, sql: Sql, exports: Exports
) -> None:
    drawn = put(sql, acting, ["Grüße aus Köln", "Ωmega Жук"], name="bild.pdf")
    await _file(app, sql, acting, drawn, pdf("eins", "zwei"), "application/pdf")
    broken = put(sql, acting, ["trotzdem lesbar"], name="kaputt.pdf")
    await _file(app, sql, acting, broken, b"%PDF-1.4 nothing", "application/pdf")
    put(sql, acting, ["ohne Datei"], name="weg.pdf")
    async with working(app):
        handle = await exports.documents(visitor(acting), format="pdf")
        made = await handle.result(WAIT_TIMEOUT)
    [file] = made.artifacts
    read = pypdfium2.PdfDocument(await handle.read(file.name))
    texts = [" ".join(page.get_textpage().get_text_range().split()) for page in read]
    images = [sum(1 for _ in page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_IMAGE])) for page in read]
    assert (made.documents, made.rows) == (3, len(read))
    odd, lost = font().substitute("Ωmega Жук")
    assert sorted(zip(texts, images, strict=True)) == sorted([
        ("bild.pdf, 1/2", 1), ("bild.pdf, 1/2 Grüße aus Köln", 0),
        ("bild.pdf, 2/2", 1), (f"bild.pdf, 2/2 {odd}", 0),
        ("kaputt.pdf, 1/2 trotzdem lesbar", 0), ("weg.pdf, 1/1 ohne Datei", 0),
    ])  # fmt: skip
    assert made.warnings.pop("export.missing_letters", 0) == lost
    assert made.warnings == {"export.pages_not_drawn": 2, "export.file_missing": 1}


async def _findable(app: Duly, org: uuid.UUID, document_id: uuid.UUID, name: str, *texts: str) -> None:
    passages = [Passage(index=i, page=i + 1, type="NarrativeText", text=text) for i, text in enumerate(texts)]
    async with app.tenant_session(org) as conn:
        await publish(conn, org, document_id, None, name, passages)


async def test_a_search_comes_in_every_format(
    app: Duly, acting: uuid.UUID, sql: Sql, exports: Exports
) -> None:
    closed = folder(sql, acting, "Vorstand", only_for="user:boss")
    mine, hidden = put(sql, acting, [], name="miete.pdf"), put(sql, acting, [], name="x.pdf", node=closed)
    await _findable(
        app, acting, mine, "miete.pdf", "Die Kaution beträgt drei Mieten.", "Anderes", "Kaution zurück"
    )
    await _findable(app, acting, hidden, "x.pdf", "Auch hier eine Kaution.")
    handles: dict[str, Any] = {}
    async with working(app):
        for form in ("csv", "jsonl", "pdf"):
            handles[form] = await exports.search(visitor(acting), "Kaution", format=form)
        made = {form: await handle.result(WAIT_TIMEOUT) for form, handle in handles.items()}
        later = await exports.search(visitor(acting), "Kaution", Filters(page_from=3))
        filtered = await later.result(WAIT_TIMEOUT)
    assert {form: (one.documents, one.rows) for form, one in made.items()} == dict.fromkeys(handles, (1, 2))
    rows = _table(await handles["csv"].read("search.csv"))
    assert [row["rank"] for row in rows] == ["1", "2"]
    assert {row["page"] for row in rows} == {"1", "3"}
    assert {row["document_id"] for row in rows} == {str(mine)}
    lines = [json.loads(line) for line in (await handles["jsonl"].read("search.jsonl")).splitlines()]
    assert [line["text"] for line in lines] == [row["text"] for row in rows]
    paper = pypdfium2.PdfDocument(await handles["pdf"].read("search.pdf"))
    assert all("Kaution" in page.get_textpage().get_text_range() for page in paper)
    assert filtered.rows == 1


async def test_after_a_crash_only_what_was_not_done_is_done(
    app: Duly, acting: uuid.UUID, sql: Sql, exports: Exports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(planning._MAX_FILE_WEIGHT, "csv", 1)
    [*_, last] = sorted(put(sql, acting, ["x"]) for _ in range(3))
    begun: list[str] = []
    second, never = asyncio.Event(), asyncio.Event()
    real = ExportWriter.write

    async def write(self: ExportWriter, batch: ExportBatch) -> WrittenFile:
        begun.append(batch.name)
        if begun == ["documents-0001.csv", "documents-0002.csv"]:
            second.set()
            await never.wait()
        return await real(self, batch)

    monkeypatch.setattr(ExportWriter, "write", write)
    handle = await exports.documents(visitor(acting))
    async with silent_worker(app, sql, drain=seconds(0)):
        await asyncio.wait_for(second.wait(), WAIT_TIMEOUT)
        await lose_all_workers(app, sql)
        put(sql, acting, ["x"], name="came later.pdf")
    sql.execute("delete from documents.documents where document_id = %s", [last])
    never.set()
    ended = await run_until_ended(app, handle)
    made = await handle.result()
    assert ended.outcome is Outcome.SUCCEEDED
    assert begun == [f"documents-000{n}.csv" for n in (1, 2, 2, 3)]
    assert (made.documents, made.rows, made.left_out) == (2, 2, 1), "what is gone by now is left out"
    assert [len(_table(await handle.read(file.name))) for file in made.artifacts] == [1, 1, 0]
