"""Extractions and their records: start, finish and settle them; keep them consistent with their jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from duly.apps.documents.consent import REMOTE_ENGINES
from duly.apps.documents.elements import Engine
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.folders.job_subjects import document_subject
from duly.apps.documents.models import Extraction
from duly.apps.documents.schema import Connection, fetch_all, fetch_one, statement
from duly.apps.documents.search.index import unpublish
from duly.core.job import JobSnapshot
from duly.core.states import Outcome, Status
from duly.jobs.application import App
from duly.jobs.registry import DomainRecord

JOB_TYPE = "extract_document"


class StartedExtraction(NamedTuple):
    """A queued or running extraction."""

    extraction_id: UUID
    job_id: UUID
    created: bool
    """Whether it is new, not one that was active already."""


class ExtractionTarget(NamedTuple):
    """The version of a document to extract."""

    document_id: UUID
    version: int
    pages: int | None = None
    """The number of pages, if it was extracted before."""


async def start_extraction(
    app: App,
    conn: Connection,
    principal: DocumentPrincipal,
    target: ExtractionTarget,
    engine: Engine,
    *,
    consent: bool = False,
    cents_per_page: Mapping[Engine, float] | None = None,
) -> StartedExtraction:
    """Enqueue the extraction of a version and create its record, or return the one that is active."""
    ids = {"org_id": principal.org_id, "document_id": target.document_id, "version": target.version}
    has_consent = consent and engine in REMOTE_ENGINES
    active = await fetch_one(
        conn, "extractions/find_active", {**ids, "engine": engine, "consent": has_consent}
    )
    if active is not None:
        return StartedExtraction(active[0], active[1], created=False)
    extraction_id = uuid4()
    job = app.registry.get(JOB_TYPE).options(
        org_id=principal.org_id,
        actor=principal.actor,
        subject_id=document_subject(target.document_id),
        idempotency_key=f"extraction:{extraction_id}",  # a later request is a new job
    )
    [handle] = await app.enqueue_many([job.call(document_id=target.document_id, engine=engine)], conn=conn)
    values = {
        **ids,
        "extraction_id": extraction_id,
        "engine": engine,
        "job_id": handle.job_id,
        "consent_by": principal.name if has_consent else None,
        "estimated_pages": target.pages,
        "estimated_cost_cents": cost_in_cents(target.pages, (cents_per_page or {}).get(engine, 0.0)),
    }
    await conn.execute(statement("extractions/create"), values)
    return StartedExtraction(extraction_id, handle.job_id, created=True)


def cost_in_cents(pages: int | None, cents_per_page: float) -> int | None:
    """Return the cost of pages in whole cents, rounded up."""
    return None if pages is None else math.ceil(round(pages * cents_per_page, 6))


async def record_start(
    conn: Connection, org_id: UUID, document_id: UUID, version: int, job_id: UUID, engine: Engine
) -> Extraction:
    """Mark the extraction of a job as running; create its record if the job was enqueued without one."""
    ids = {"org_id": org_id, "document_id": document_id}
    values = {**ids, "version": version, "job_id": job_id, "engine": engine}
    row = await fetch_one(conn, "extractions/start", values)
    assert row is not None
    extraction = Extraction.model_validate(row[0])
    await conn.execute(
        statement("extractions/set_document_extracting"), {**ids, "version": extraction.version}
    )
    return extraction


async def list_extractions(
    conn: Connection, org_id: UUID, document_id: UUID, before: UUID | None, limit: int
) -> Sequence[Extraction]:
    """Return the extractions of a document, newest first, from the one after `before` on."""
    values = {"org_id": org_id, "document_id": document_id, "before": before, "limit": limit}
    rows = await fetch_all(conn, "extractions/list", values)
    return [Extraction.model_validate(row[0]) for row in rows]


async def read_current_extraction(conn: Connection, org_id: UUID, document_id: UUID) -> Extraction | None:
    """Return the extraction that the text of a document is from."""
    row = await fetch_one(conn, "extractions/read_current", {"org_id": org_id, "document_id": document_id})
    return None if row is None else Extraction.model_validate(row[0])


async def record_result(
    conn: Connection, org_id: UUID, extraction: Extraction, *, result: dict[str, Any], cents: int | None
) -> str | None:
    """Mark an extraction as done and make it the document's current one; return the document's type."""
    needs_ocr = bool(result["needs_ocr"])
    ids = {"org_id": org_id, "extraction_id": extraction.extraction_id, "pages": result["page_count"]}
    document_values = {
        **ids,
        "document_id": extraction.document_id,
        "status": "needs_ocr" if needs_ocr else "extracted",
        "chunks": result["chunk_count"],
    }
    row = await fetch_one(conn, "extractions/set_current", document_values)
    doc_type = row[0] if row else None
    extraction_values = {
        **ids,
        "status": "needs_ocr" if needs_ocr else "done",
        "cents": cents,
        "result": Jsonb({**result, "doc_type": doc_type}),
        "warnings": Jsonb(result["warnings"]),
    }
    await conn.execute(statement("extractions/finish"), extraction_values)
    return doc_type


async def record_cancellation(conn: Connection, org_id: UUID, job_id: UUID, reason: str, pages: int) -> None:
    """Mark an extraction as canceled before it published anything."""
    values = {"status": "canceled", "error_code": None, "error_message": reason, "pages": pages}
    await _settle(conn, org_id, job_id, values)


async def settle(conn: Connection, org_id: UUID, job_id: UUID, job: JobSnapshot | None) -> bool:
    """End an extraction whose job ended without publishing; return whether that changed anything."""
    values: dict[str, Any]
    if job is None:
        values = {"error_code": "job.gone", "error_message": "the job is no longer retained", "pages": None}
    else:
        values = {
            "error_code": job.error_code,
            "error_message": job.error_message or job.cancel_reason,
            "pages": job.partial_count,
        }
    return await _settle(conn, org_id, job_id, {**values, "status": _final_status(job)})


async def _settle(conn: Connection, org_id: UUID, job_id: UUID, values: Mapping[str, Any]) -> bool:
    row = await fetch_one(conn, "extractions/settle", {"org_id": org_id, "job_id": job_id, **values})
    if row is None:
        return False
    document_id, has_no_text = row
    if has_no_text:
        # The indexed passages are from an older version.
        await unpublish(conn, org_id, document_id)
    return True


def _final_status(job: JobSnapshot | None) -> str:
    if job is not None and job.status is Status.CANCELED:
        return "canceled"
    return "blocked" if job is not None and job.outcome is Outcome.BLOCKED else "failed"


class ExtractionAdapter:
    """Lets the reconciler compare extractions with their jobs."""

    name = "document_extraction"

    def __init__(self) -> None:
        self._turns = count()

    async def find(self, conn: Any, limit: int) -> Sequence[DomainRecord]:
        """Return active extractions, and those that ended recently."""
        values = {"org_id": await _current_org(conn), "limit": limit, "turn": next(self._turns)}
        return [
            DomainRecord(
                str(extraction_id),
                job_id,
                over=status not in ("queued", "running"),
                reason=f"the extraction is {status}",
            )
            for extraction_id, job_id, status in await fetch_all(
                conn, "extractions/list_for_reconciler", values
            )
        ]

    async def settle(self, conn: Any, record: DomainRecord, job: JobSnapshot | None) -> bool:
        """End an extraction whose job has ended, or is no longer retained."""
        return await settle(conn, await _current_org(conn), record.job_id, job)


async def _current_org(conn: Any) -> UUID:
    [[org_id]] = await (await conn.execute("select duly.current_org()")).fetchall()
    return org_id  # type: ignore[no-any-return]
