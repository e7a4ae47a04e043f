"""Remote engines: they need consent, and the cost is estimated before anything is sent."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from duly import Duly, Outcome, Status
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.testing import FreshDatabase
from tests.apps.documents.engines.unstructured_fake import KEY, Fake, fake_unstructured
from tests.apps.documents.files import pdf
from tests.apps.documents.stage import add
from tests.worker.working import run_until_ended


@pytest.fixture
def service() -> Iterator[Fake]:
    with fake_unstructured() as fake:
        yield fake


@pytest.fixture
async def connected(fresh: FreshDatabase, tmp_path: Path, service: Fake) -> AsyncIterator[Duly]:
    """An application with the remote service, at 2.5 cents per page with hi_res."""
    app = Duly(
        database_url=fresh.url,
        database_direct_url=fresh.direct_url if fresh.url != fresh.direct_url else None,
        blobs_url=str(tmp_path / "blobs"),
        maintenance=False,
        unstructured_url=service.url,
        unstructured_key=KEY,
        unstructured_cents=2.5,
    )
    app.include_documents()
    yield app
    await app.close()


async def test_without_consent_nothing_is_sent_and_the_job_is_blocked(
    connected: Duly, anna: DocumentPrincipal, service: Fake
) -> None:
    docs = connected.documents
    filed = await add(connected, anna, pdf(["confidential"]), "a.pdf")
    begun = await docs.extract(anna, filed.document_id, "unstructured_hires")
    job = await run_until_ended(connected, connected.handle(begun.job_id, org_id=anna.org_id))
    assert (job.outcome, job.error_code, job.attempt) == (Outcome.BLOCKED, "extraction.no_consent", 1)
    [row] = await docs.extractions(anna, filed.document_id)
    assert (row.status, row.consent_given_by, row.error_code) == ("blocked", None, "extraction.no_consent")
    assert (await docs.get(anna, filed.document_id)).status == "blocked"
    assert service.files == []

    by_hand = connected.registry.get("extract_document").options(org_id=anna.org_id, actor=anna.actor)
    handle = await by_hand.enqueue(document_id=filed.document_id, engine="unstructured_fast")
    assert (await run_until_ended(connected, handle)).error_code == "extraction.no_consent"
    assert service.files == []


async def test_with_consent_the_file_is_sent_and_its_cost_recorded(
    connected: Duly, anna: DocumentPrincipal, service: Fake, sql: psycopg.Connection
) -> None:
    docs = connected.documents
    filed = await add(connected, anna, pdf(["one", "two", "three"]), "a.pdf")
    begun = await docs.extract(anna, filed.document_id, "unstructured_hires", consent=True)
    job = await run_until_ended(connected, connected.handle(begun.job_id, org_id=anna.org_id))
    assert (job.status, len(service.files)) == (Status.COMPLETED, 1)
    [row] = await docs.extractions(anna, filed.document_id)
    assert (row.status, row.consent_given_by) == ("done", "user:anna")
    assert row.consent_given_at is not None
    assert (row.estimated_pages, row.estimated_cost_cents) == (3, 8)
    assert (row.actual_pages, row.actual_cost_cents) == (3, 8)
    assert [hit.page for hit in (await docs.search(anna, '"auf Seite 2"')).hits] == [2]
    records = sql.execute("select string_agg(t::text, ' ') from documents.extractions t").fetchone()
    assert records is not None
    assert KEY not in str(records[0])


async def test_without_a_service_consent_is_not_enough(library: Duly, anna: DocumentPrincipal) -> None:
    filed = await add(library, anna, "text")
    begun = await library.documents.extract(anna, filed.document_id, "unstructured_fast", consent=True)
    job = await run_until_ended(library, library.handle(begun.job_id, org_id=anna.org_id))
    assert (job.outcome, job.error_code) == (Outcome.BLOCKED, "extraction.not_configured")


async def test_consent_is_for_one_extraction(
    connected: Duly, anna: DocumentPrincipal, service: Fake, acting: uuid.UUID
) -> None:
    docs = connected.documents
    filed = await add(connected, anna, pdf(["one"]), "a.pdf")
    for consent, outcome in ((True, Outcome.SUCCEEDED), (False, Outcome.BLOCKED)):
        begun = await docs.extract(anna, filed.document_id, "unstructured_fast", consent=consent)
        job = await run_until_ended(connected, connected.handle(begun.job_id, org_id=anna.org_id))
        assert job.outcome is outcome
    assert len(service.files) == 1
    assert (await docs.get(anna, filed.document_id)).status == "extracted", "the earlier text stays"
