"""From pages to what is found: passages, type and language, all in the transaction that ends the job."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from duly.apps.documents.classification.classifier import classify_pages, save_classification
from duly.apps.documents.elements import PageElements, Passage
from duly.apps.documents.extraction import store
from duly.apps.documents.extraction.passages import passages
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


async def published(
    app: App,
    ctx: Context,
    file_store: FileStore,
    document: Document,
    row: Extraction,
    pages: Sequence[PageElements],
    *,
    cents: int | None,
) -> dict[str, Any]:
    """Replace what was found of the document so far; what the job answers."""
    found = await asyncio.to_thread(lambda: list(passages(pages)))
    if not found and all(page.state != "needs_ocr" for page in pages):
        raise Fail("there is no text in it", code="document.empty")
    name = elements_file_name(row.extraction_id)
    await file_store.save_derived(row.document_id, name, _elements(pages))
    ids = {"org_id": ctx.job.org_id, "document_id": row.document_id}
    result = _result(pages, found, derived=name)
    who = DocumentPrincipal(ctx.job.org_id, ctx.job.actor)
    verdict, prepared = await classify_pages(app, who, document.name, pages), await prepare(found)
    async with ctx.transaction() as conn:
        now = await fetch_one(conn, "documents/lock", {**ids, "hidden_folders": []})
        if now is None or now[2] != row.version:
            raise Cancel("the document was deleted, or has a newer version")
        await publish(conn, ctx.job.org_id, row.document_id, row.extraction_id, now[1], prepared)
        await save_classification(conn, who, row.document_id, verdict)
        result |= {"doc_type": await store.finish(conn, ctx.job.org_id, row, result=result, cents=cents)}
        await _clear_older(app, conn, who, row)
    ctx.count(warnings=len(result["warnings"]))
    return result


async def _clear_older(app: App, conn: Connection, who: DocumentPrincipal, row: Extraction) -> None:
    """Have the files of extractions before this one removed."""
    values = {"org_id": who.org_id, "document_id": row.document_id, "extraction_id": row.extraction_id}
    if await fetch_one(conn, "extractions/has_older", values):
        # Of an org that may have no further jobs waiting, the next extraction clears them away.
        with suppress(LimitExceeded):
            async with conn.transaction():
                await schedule_file_removal(app, conn, who, outdated=[row.document_id])


def _result(pages: Sequence[PageElements], found: Sequence[Passage], *, derived: str) -> dict[str, Any]:
    states = Counter(page.state for page in pages)
    warnings = Counter(warning for page in pages for warning in page.warnings)
    return {
        "page_count": len(pages),
        "chunk_count": len(found),
        "needs_ocr": [page.number for page in pages if page.state == "needs_ocr"],
        "pages": dict(states),
        "warnings": sorted(warnings),
        "derived": derived,
    }


def _elements(pages: Sequence[PageElements]) -> bytes:
    return json.dumps(
        [page.model_dump(mode="json", exclude_none=True) for page in pages], ensure_ascii=False
    ).encode()
