"""The job `extract_document`: partial results, publication in one transaction, a consistent record."""

from __future__ import annotations

import json
import uuid
from typing import Any

import psycopg

from duly import Duly, Outcome, Status
from duly.apps.documents.engines import ReaderLimits
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.models import Extraction
from duly.maintenance.adapter_sync import AdapterSync
from tests.apps.documents.files import pdf
from tests.apps.documents.stage import add, visitor
from tests.worker.working import run_until_ended, settle_attempts

LETTER = "Mietvertrag über die Wohnung Hauptstraße 7\nDer Mieter zahlt die Miete monatlich im Voraus."


async def extraction(app: Duly, who: DocumentPrincipal, document_id: uuid.UUID) -> Extraction:
    return (await app.documents.extractions(who, document_id))[0]


async def read(
    app: Duly, who: DocumentPrincipal, document_id: uuid.UUID, engine: str = "fast", **how: Any
) -> Any:
    begun = await app.documents.extract(who, document_id, engine, **how)  # type: ignore[arg-type]
    return await run_until_ended(app, app.handle(begun.job_id, org_id=who.org_id))


async def test_pages_are_partial_results_and_the_document_becomes_searchable(
    library: Duly, anna: DocumentPrincipal
) -> None:
    filed = await add(library, anna, pdf([LETTER, "Zweite Seite", None]), "Vertrag.pdf", engine="fast")
    begun = await extraction(library, anna, filed.document_id)
    assert (begun.status, begun.engine) == ("queued", "fast")
    assert begun.job_id is not None
    job = await run_until_ended(library, library.handle(begun.job_id, org_id=anna.org_id))
    assert (job.status, job.partial_count) == (Status.COMPLETED, 3)
    result = await library.handle(begun.job_id, org_id=anna.org_id).result()
    assert (result["page_count"], result["needs_ocr"]) == (3, [3])
    assert result["doc_type"] == "rental_contract"

    document = await library.documents.get(anna, filed.document_id)
    assert (document.status, document.page_count, document.doc_type) == ("needs_ocr", 3, "rental_contract")
    assert document.language == "de"
    assert document.chunk_count == result["chunk_count"] >= 2
    row = await extraction(library, anna, filed.document_id)
    assert (row.status, row.actual_pages, row.actual_cost_cents, row.error_code) == ("needs_ocr", 3, 0, None)
    found = await library.documents.search(anna, "Miete Hauptstrasse")
    assert [hit.page for hit in found.hits][:1] == [1]
    pages = json.loads(await library.documents.derived(anna, filed.document_id, result["derived"]))
    assert [page["state"] for page in pages] == ["text", "text", "needs_ocr"]


async def test_an_unreadable_file_fails_job_extraction_and_document_with_its_code(
    library: Duly, anna: DocumentPrincipal
) -> None:
    filed = await add(library, anna, b"%PDF-1.7 and nothing more", "kaputt.pdf")
    job = await read(library, anna, filed.document_id)
    assert (job.status, job.error_code, job.attempt) == (Status.FAILED, "document.broken", 1)
    row = await extraction(library, anna, filed.document_id)
    assert (row.status, row.error_code) == ("failed", "document.broken")
    assert (await library.documents.get(anna, filed.document_id)).status == "failed"


async def test_an_extraction_fails_when_its_pages_have_too_much_text_together(
    app: Duly, anna: DocumentPrincipal
) -> None:
    app.include_documents(limits=ReaderLimits(whole_text_max=50))
    filed = await add(app, anna, pdf(["Eine Seite mit Text", "Noch eine mit Text", LETTER]), "Buch.pdf")
    job = await read(app, anna, filed.document_id)
    assert (job.error_code, job.attempt, job.partial_count) == ("document.too_large", 1, 2)
    assert (await extraction(app, anna, filed.document_id)).status == "failed"


async def test_a_new_extraction_replaces_the_text_and_a_failed_one_keeps_it(
    library: Duly, anna: DocumentPrincipal, sql: psycopg.Connection
) -> None:
    filed = await add(library, anna, pdf(["Erste Fassung Apfel"]), "a.pdf")
    await read(library, anna, filed.document_id)
    await add(library, anna, pdf(["Zweite Fassung Birne", "Noch eine Seite"]), document_id=filed.document_id)
    assert (await library.documents.search(anna, "Apfel")).hits
    await read(library, anna, filed.document_id)
    assert not (await library.documents.search(anna, "Apfel")).hits
    assert [hit.page for hit in (await library.documents.search(anna, "Birne")).hits] == [1]
    before = await library.documents.get(anna, filed.document_id)

    blocked = await read(library, anna, filed.document_id, "unstructured_fast")
    assert blocked.outcome is Outcome.BLOCKED
    after = await library.documents.get(anna, filed.document_id)
    assert (after.status, after.chunk_count, after.extraction_id) == (
        before.status,
        before.chunk_count,
        before.extraction_id,
    )
    assert (await library.documents.search(anna, "Birne")).hits


async def test_a_repeated_request_returns_the_active_extraction(
    library: Duly, anna: DocumentPrincipal
) -> None:
    filed = await add(library, anna, "text")
    first = await library.documents.extract(anna, filed.document_id)
    again = await library.documents.extract(anna, filed.document_id)
    assert (again.job_id, again.created) == (first.job_id, False)


async def test_the_reconciler_cancels_an_extraction_whose_job_was_canceled(
    library: Duly, anna: DocumentPrincipal, sql: psycopg.Connection
) -> None:
    filed = await add(library, anna, "text", engine="fast")
    row = await extraction(library, anna, filed.document_id)
    assert row.job_id is not None
    await library.handle(row.job_id, org_id=anna.org_id).cancel("no longer needed")
    await AdapterSync(library).once()
    settled = await extraction(library, anna, filed.document_id)
    assert (settled.status, settled.error_message) == ("canceled", "no longer needed")
    assert (await library.documents.get(anna, filed.document_id)).status == "stored"


async def test_deleting_a_document_fails_its_extraction(
    library: Duly, anna: DocumentPrincipal, sql: psycopg.Connection
) -> None:
    filed = await add(library, anna, "text", engine="fast")
    row = await extraction(library, anna, filed.document_id)
    assert row.job_id is not None
    await library.documents.remove(anna, filed.document_id)
    await settle_attempts(library, 2)
    job = await library.handle(row.job_id, org_id=anna.org_id).status()
    assert (job.status, job.error_code) == (Status.FAILED, "document.unknown")


async def test_a_job_enqueued_directly_creates_its_extraction(
    library: Duly, anna: DocumentPrincipal, acting: uuid.UUID
) -> None:
    filed = await add(library, anna, "Guten Tag, ein Brief.")
    handle = await library.registry.get("extract_document").enqueue(document_id=filed.document_id)
    assert (await run_until_ended(library, handle)).status is Status.COMPLETED
    assert (await extraction(library, anna, filed.document_id)).job_id == handle.job_id


async def test_a_document_in_a_restricted_folder_is_extracted_only_with_write_access(
    library: Duly, anna: DocumentPrincipal, sql: psycopg.Connection, acting: uuid.UUID
) -> None:
    folder = await library.documents.folders.create(anna, "Personal")
    filed = await add(library, anna, "secret", node_id=folder.node_id)
    sql.execute(
        "insert into documents.node_grants (org_id, node_id, principal, level, granted_by)"
        " values (%s, %s, 'user:ben', 'write', 'test')",
        [anna.org_id, folder.node_id],
    )
    by_hand = library.registry.get("extract_document")
    # u1 acts in these tests, and is not ben.
    assert (
        await run_until_ended(library, await by_hand.enqueue(document_id=filed.document_id))
    ).error_code == ("document.unknown")
    ben = visitor(anna.org_id, "ben")
    bens = by_hand.options(actor=ben.actor, idempotency_key="bens", subject_id="for everybody")
    elsewhere = await bens.enqueue(document_id=filed.document_id)
    assert (await run_until_ended(library, elsewhere)).error_code == "document.subject_missing"
    assert (await read(library, ben, filed.document_id)).status is Status.COMPLETED


async def test_an_extraction_is_canceled_when_its_version_is_replaced(
    library: Duly, anna: DocumentPrincipal
) -> None:
    """Consent, partial results and cost belong to one version."""
    filed = await add(library, anna, pdf(["Erste Fassung"]), "a.pdf", engine="fast")
    old = await extraction(library, anna, filed.document_id)
    assert old.job_id is not None
    await add(library, anna, pdf(["Zweite Fassung"]), document_id=filed.document_id, engine="fast")
    await settle_attempts(library, 2)
    job = await library.handle(old.job_id, org_id=anna.org_id).status()
    assert (job.status, job.cancel_reason) == (Status.CANCELED, "the document has a newer version")
    new, before = await library.documents.extractions(anna, filed.document_id)
    assert (before.version, before.status, before.actual_pages) == (1, "canceled", None)
    assert (new.version, new.status) == (2, "done")
    assert (await library.documents.get(anna, filed.document_id)).status == "extracted"
    assert [hit.text for hit in (await library.documents.search(anna, "Fassung")).hits] == ["Zweite Fassung"]
