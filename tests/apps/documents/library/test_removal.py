"""A deleted document is removed: its rows at once, its files by a job; the audit trail records it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from duly import Duly
from duly.apps.documents.errors import UnknownFolder
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.library.file_store import elements_file_name
from duly.apps.documents.library.removal import schedule_file_removal
from tests.apps.documents.stage import add
from tests.worker.working import run_until_ended, settle_attempts


def files(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "blobs" / "tenant").rglob("*") if path.is_file())


async def test_a_deleted_document_leaves_nothing_but_its_entry_in_the_audit_trail(
    library: Duly, anna: DocumentPrincipal, sql: psycopg.Connection, tmp_path: Path
) -> None:
    filed = await add(library, anna, "one", "Brief.txt")
    await add(library, anna, "two", document_id=filed.document_id)
    file_store = await library.documents.file_store(anna.org_id)
    await file_store.save_derived(filed.document_id, "elements.json", b"[]")
    assert len(files(tmp_path)) == 3
    await library.documents.remove(anna, filed.document_id, reason="asked by the customer")
    await settle_attempts(library)
    assert files(tmp_path) == []
    for table in ("documents", "document_versions", "extractions"):
        assert sql.execute(f"select count(*) from documents.{table}").fetchone() == (0,)  # type: ignore[arg-type]
    entry = (await library.audit.list(anna.org_id, action="document.deleted")).entries[0]
    assert (entry.target_id, entry.reason, entry.detail["name"]) == (
        str(filed.document_id),
        "asked by the customer",
        "Brief.txt",
    )


async def test_content_that_another_document_still_is_stays(
    library: Duly, anna: DocumentPrincipal, tmp_path: Path
) -> None:
    first = await add(library, anna, "shared")
    second = await add(library, anna, "first")
    await add(library, anna, "shared", document_id=second.document_id)
    await library.documents.remove(anna, first.document_id)
    await settle_attempts(library)
    _, stream = await library.documents.content(anna, second.document_id)
    assert [piece async for piece in stream] == [b"shared"]


async def test_files_of_existing_documents_are_never_removed(
    library: Duly, anna: DocumentPrincipal, tmp_path: Path
) -> None:
    filed = await add(library, anna, "kept")
    file_store = await library.documents.file_store(anna.org_id)
    await file_store.save_derived(filed.document_id, "elements.json", b"[]")
    sha256 = (await library.documents.get(anna, filed.document_id)).sha256
    job = library.registry.get("remove_files")
    await job.enqueue(documents=[filed.document_id], uploads=[], originals=[sha256])
    await settle_attempts(library)
    assert len(files(tmp_path)) == 2


async def test_job_results_with_the_text_are_erased_with_the_document(
    library: Duly, anna: DocumentPrincipal, sql: psycopg.Connection, tmp_path: Path
) -> None:
    filed = await add(library, anna, "Ganz geheimer Text, den keiner mehr lesen soll.", engine="fast")
    [row] = await library.documents.extractions(anna, filed.document_id)
    assert row.job_id is not None
    await run_until_ended(library, library.handle(row.job_id, org_id=anna.org_id))
    kept = "select count(*) from duly.result_snapshots where payload::text like '%geheimer%'"
    assert sql.execute(kept).fetchone() == (1,)
    await library.documents.remove(anna, filed.document_id, reason="asked by the customer")
    await settle_attempts(library)
    assert sql.execute(kept).fetchone() == (0,)
    assert files(tmp_path) == []
    entry = (await library.audit.list(anna.org_id, action="result.erased")).entries[0]
    assert (entry.target_id, entry.detail["snapshots"]) == (f"document:{filed.document_id}", 2)


async def test_an_earlier_removal_job_does_not_replace_a_later_one(
    library: Duly, anna: DocumentPrincipal, tmp_path: Path
) -> None:
    filed = await add(library, anna, "kept")
    sha256 = (await library.documents.get(anna, filed.document_id)).sha256
    job = library.registry.get("remove_files")
    await job.enqueue(documents=[filed.document_id], uploads=[], originals=[sha256])
    await library.documents.remove(anna, filed.document_id)
    await settle_attempts(library, 2)
    assert files(tmp_path) == []


async def test_a_file_refused_after_its_upload_leaves_no_content(
    library: Duly, anna: DocumentPrincipal, tmp_path: Path, sql: psycopg.Connection
) -> None:
    folder = await library.documents.folders.create(anna, "Haus")

    async def slow() -> AsyncIterator[bytes]:
        yield b"half"
        await library.documents.folders.remove(anna, folder.node_id)
        yield b" and half"

    with pytest.raises(UnknownFolder):
        await library.documents.add(anna, "a.txt", slow(), node_id=folder.node_id, engine=None)
    await settle_attempts(library)
    assert files(tmp_path) == []


async def test_files_of_an_older_extraction_are_removed_after_a_newer_one(
    library: Duly, anna: DocumentPrincipal, sql: psycopg.Connection, tmp_path: Path
) -> None:
    filed = await add(library, anna, "Ein Brief", engine="fast")
    await settle_attempts(library)
    begun = await library.documents.extract(anna, filed.document_id)
    await settle_attempts(library, 2)  # it is read, and what was read before is cleared away
    left = {path.stem for path in (tmp_path / "blobs" / "tenant").rglob("*.json")}
    assert left == {str(begun.extraction_id)}
    newest, oldest = await library.documents.extractions(anna, filed.document_id)
    assert newest.result_json
    assert oldest.result_json
    assert newest.result_json["derived"] == f"{begun.extraction_id}.json"
    assert (oldest.status, oldest.result_json["derived"], oldest.result_json["page_count"]) == (
        "done",
        None,
        1,
    )
    assert (await library.documents.elements(anna, filed.document_id))[0] == begun.extraction_id


async def test_an_extraction_that_is_about_to_publish_keeps_its_file_and_a_crash_leaves_none(
    library: Duly, anna: DocumentPrincipal, sql: psycopg.Connection, tmp_path: Path
) -> None:
    filed = await add(library, anna, "Ein Brief", engine="fast")
    await settle_attempts(library)
    names = {}
    file_store = await library.documents.file_store(anna.org_id)
    for status in ("running", "failed"):  # the failed one died after its file was there
        names[status] = uuid4()
        sql.execute(
            "insert into documents.extractions (org_id, extraction_id, document_id, version, engine, status)"
            " values (%s, %s, %s, 1, 'hires', %s)",
            [anna.org_id, names[status], filed.document_id, status],
        )
        await file_store.save_derived(filed.document_id, elements_file_name(names[status]), b"[]")
    async with library.tenant_session(anna.org_id) as conn:
        await schedule_file_removal(library, conn, anna, outdated=[filed.document_id])
    await settle_attempts(library)
    left = {path.stem for path in (tmp_path / "blobs" / "tenant").rglob("*.json")}
    current = (await library.documents.get(anna, filed.document_id)).extraction_id
    assert left == {str(current), str(names["running"])}


async def test_half_written_files_of_a_crash_are_swept_when_they_are_old(
    library: Duly, anna: DocumentPrincipal, tmp_path: Path
) -> None:
    filed = await add(library, anna, "kept")
    folder = tmp_path / "blobs" / "tenant" / str(anna.org_id) / "tmp"
    folder.mkdir(exist_ok=True)
    for name, age in (("old", timedelta(days=2)), ("new", timedelta(0))):
        (folder / name).write_bytes(b"half")
        at = (datetime.now(UTC) - age).timestamp()
        os.utime(folder / name, (at, at))
    await library.documents.remove(anna, filed.document_id)
    await settle_attempts(library)
    assert files(tmp_path) == ["new"]
