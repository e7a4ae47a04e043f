"""Publish extracted pages: index their passages and classify the document in the job's transaction."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from duly.apps.documents.classification.classifier import classify_pages, save_classification
from duly.apps.documents.elements import PageElements, Passage
from duly.apps.documents.extraction.passages import split_passages
from duly.apps.documents.extraction.service import record_result
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.library.file_store import FileStore, elements_file_name
from duly.apps.documents.library.removal import schedule_file_removal
from duly.apps.documents.models import Document, Extraction
from duly.apps.documents.schema import Connection, fetch_one
from duly.apps.documents.search.index import prepare, publish
from duly.core.errors import LimitExceeded
from duly.core.outcome import Cancel, Fail
from duly.jobs.application import App
from duly.worker.context.context import Context


async def publish_pages(
    app: App,
    ctx: Context,
    file_store: FileStore,
    document: Document,
    extraction: Extraction,
    pages: Sequence[PageElements],
    *,
    cents: int | None,
) -> dict[str, Any]:
    """Replace the text of a document by these pages, and return the result of the job."""
    passages = await asyncio.to_thread(lambda: list(split_passages(pages)))
    if not passages and all(page.state != "needs_ocr" for page in pages):
        raise Fail("the document contains no text", code="document.empty")
    file_name = elements_file_name(extraction.extraction_id)
    await file_store.save_derived(extraction.document_id, file_name, _pages_json(pages))
    result = _job_result(pages, passages, derived=file_name)
    principal = DocumentPrincipal(ctx.job.org_id, ctx.job.actor)
    verdict, prepared = await classify_pages(app, principal, document.name, pages), await prepare(passages)
    org_id, document_id = ctx.job.org_id, extraction.document_id
    async with ctx.transaction() as conn:
        values = {"org_id": org_id, "document_id": document_id, "hidden_folders": []}
        current = await fetch_one(conn, "documents/lock", values)
        if current is None or current[2] != extraction.version:
            raise Cancel("the document was deleted, or has a newer version")
        await publish(conn, org_id, document_id, extraction.extraction_id, current[1], prepared)
        await save_classification(conn, principal, document_id, verdict)
        result["doc_type"] = await record_result(conn, org_id, extraction, result=result, cents=cents)
        await _remove_older_files(app, conn, principal, extraction)
    ctx.count(warnings=len(result["warnings"]))
    return result


async def _remove_older_files(
    app: App, conn: Connection, principal: DocumentPrincipal, extraction: Extraction
) -> None:
    """Schedule the removal of the files of older extractions."""
    values = {
        "org_id": principal.org_id,
        "document_id": extraction.document_id,
        "extraction_id": extraction.extraction_id,
    }
    if await fetch_one(conn, "extractions/has_older", values):
        # An org at its limit of queued jobs: its next extraction removes them.
        with suppress(LimitExceeded):
            async with conn.transaction():
                await schedule_file_removal(app, conn, principal, outdated=[extraction.document_id])


def _job_result(
    pages: Sequence[PageElements], passages: Sequence[Passage], *, derived: str
) -> dict[str, Any]:
    return {
        "page_count": len(pages),
        "chunk_count": len(passages),
        "needs_ocr": [page.number for page in pages if page.state == "needs_ocr"],
        "pages": dict(Counter(page.state for page in pages)),
        "warnings": sorted({warning for page in pages for warning in page.warnings}),
        "derived": derived,
    }


def _pages_json(pages: Sequence[PageElements]) -> bytes:
    return json.dumps(
        [page.model_dump(mode="json", exclude_none=True) for page in pages], ensure_ascii=False
    ).encode()
