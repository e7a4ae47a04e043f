"""A document, its extractions and their jobs say the same, in whatever order things happen."""

from __future__ import annotations

import uuid

import psycopg
import pytest

from duly import Duly, Outcome, Status
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.maintenance.adapter_sync import AdapterSync
from tests.apps.documents.files import pdf
from tests.apps.documents.stage import add
from tests.worker.working import run_until_ended, settle_attempts


async def ended(app: Duly, who: DocumentPrincipal, document_id: uuid.UUID, engine: str = "fast") -> Outcome:
    begun = await app.documents.extract(who, document_id, engine)  # type: ignore[arg-type]
    return (await run_until_ended(app, app.handle(begun.job_id, org_id=who.org_id))).outcome


async def test_a_version_that_cannot_be_read_leaves_no_text_of_the_one_before(
    library: Duly, anna: DocumentPrincipal
) -> None:
    docs = library.documents
    filed = await add(library, anna, pdf(["Alte Fassung"]), "a.pdf")
    await ended(library, anna, filed.document_id)
    await add(library, anna, b"%PDF-1.7 and nothing more", document_id=filed.document_id)
    between = await docs.get(anna, filed.document_id)
    assert (between.status, between.page_count, between.extraction_id) == ("stored", None, None)
    assert (await docs.search(anna, "Fassung")).hits, "until it is known that there is none"
    assert await ended(library, anna, filed.document_id) is Outcome.FAILED
    after = await docs.get(anna, filed.document_id)
    assert (after.status, after.page_count, after.chunk_count) == ("failed", None, None)
    assert not (await docs.search(anna, "Fassung")).hits


async def test_an_old_extraction_says_nothing_of_a_newer_version(
    library: Duly, anna: DocumentPrincipal
) -> None:
    docs = library.documents
    filed = await add(library, anna, pdf(["one"]), "a.pdf")
    old = await docs.extract(anna, filed.document_id, "hires")
    await add(library, anna, b"%PDF-1.7 and nothing more", document_id=filed.document_id)
    new = await docs.extract(anna, filed.document_id)
    await library.handle(old.job_id, org_id=anna.org_id).cancel("no longer needed")
    await run_until_ended(library, library.handle(new.job_id, org_id=anna.org_id))
    await AdapterSync(library).once()
    assert (await docs.get(anna, filed.document_id)).status == "failed"
    assert [one.status for one in await docs.extractions(anna, filed.document_id)] == ["failed", "canceled"]


async def test_extractions_are_listed_in_pages(
    library: Duly, anna: DocumentPrincipal, sql: psycopg.Connection
) -> None:
    filed = await add(library, anna, "one")
    sql.execute(
        "insert into documents.extractions (org_id, document_id, version, engine, status)"
        " select %s, %s, 1, 'fast', 'failed' from generate_series(1, 5)",  # all at the same moment
        [anna.org_id, filed.document_id],
    )
    seen: list[uuid.UUID] = []
    while page := await library.documents.extractions(
        anna, filed.document_id, before=seen[-1] if seen else None, limit=2
    ):
        seen += [one.extraction_id for one in page]
    assert len(seen) == len({*seen}) == 5


async def test_an_extraction_that_is_refused_does_not_hide_one_that_runs(
    library: Duly, anna: DocumentPrincipal, sql: psycopg.Connection
) -> None:
    docs = library.documents
    filed = await add(library, anna, pdf(["one"]), "a.pdf")
    await docs.extract(anna, filed.document_id, "hires")
    sql.execute("update documents.extractions set status = 'running'")
    sql.execute("update documents.documents set status = 'extracting'")
    begun = await docs.extract(anna, filed.document_id, "unstructured_fast")
    async with library.tenant_session(anna.org_id) as conn:
        from duly.apps.documents.extraction.service import record_cancellation

        await record_cancellation(conn, anna.org_id, begun.job_id, "refused", 0)
    assert (await docs.get(anna, filed.document_id)).status == "extracting"


async def test_who_cancels_and_asks_again_gets_another_job(library: Duly, anna: DocumentPrincipal) -> None:
    filed = await add(library, anna, "text")
    first = await library.documents.extract(anna, filed.document_id)
    await library.handle(first.job_id, org_id=anna.org_id).cancel("wait")
    again = await library.documents.extract(anna, filed.document_id)
    assert again.created
    assert again.job_id != first.job_id


async def test_many_that_ended_do_not_keep_the_reconciler_from_those_under_way(
    library: Duly, anna: DocumentPrincipal, sql: psycopg.Connection
) -> None:
    filed = await add(library, anna, "text", engine="fast")
    [row] = await library.documents.extractions(anna, filed.document_id)
    assert row.job_id is not None
    sql.execute(
        "insert into documents.extractions"
        " (org_id, document_id, version, job_id, engine, status, finished_at, updated_at)"
        " select org_id, document_id, 1, gen_random_uuid(), 'fast', 'done', now(), now()"
        " from documents.documents, generate_series(1, 300)"
    )
    await library.handle(row.job_id, org_id=anna.org_id).cancel("no longer needed")
    await AdapterSync(library).once()
    found = sql.execute("select status from documents.extractions where job_id = %s", [row.job_id]).fetchone()
    assert found == ("canceled",)


@pytest.mark.parametrize("data", [pdf(["", ""]), b"  \n \n"])
async def test_a_file_without_any_text_is_empty_and_not_done(
    library: Duly, anna: DocumentPrincipal, data: bytes
) -> None:
    filed = await add(library, anna, data, "leer.pdf")
    begun = await library.documents.extract(anna, filed.document_id)
    job = await run_until_ended(library, library.handle(begun.job_id, org_id=anna.org_id))
    assert (job.status, job.error_code) == (Status.FAILED, "document.empty")
    assert (await library.documents.get(anna, filed.document_id)).status == "failed"


async def test_a_confirmed_type_is_what_the_extraction_answers(
    library: Duly, anna: DocumentPrincipal
) -> None:
    filed = await add(library, anna, "Ein Blatt ohne besondere Merkmale, nur ein paar Worte.")
    await library.documents.classification.confirm(anna, filed.document_id, "invoice")
    begun = await library.documents.extract(anna, filed.document_id)
    await settle_attempts(library)
    result = await library.handle(begun.job_id, org_id=anna.org_id).result()
    assert result["doc_type"] == (await library.documents.get(anna, filed.document_id)).doc_type == "invoice"


async def test_who_asks_for_an_extraction_and_agrees_to_it_is_in_the_audit_trail(
    library: Duly, anna: DocumentPrincipal
) -> None:
    filed = await add(library, anna, "text")
    await library.documents.extract(anna, filed.document_id, "unstructured_fast", consent=True)
    entry = (await library.audit.list(anna.org_id, action="document.extraction_asked")).entries[0]
    assert (entry.actor_id, entry.detail) == (
        "anna",
        {"engine": "unstructured_fast", "consent": True, "version": 1},
    )
