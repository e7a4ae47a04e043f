"""The job types `export_documents` and `export_search`: a plan, then file by file, each a chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Annotated
from uuid import UUID

from pydantic import Field

from duly.apps.documents.exports.models import (
    CONTENT_TYPES,
    ExportBatch,
    ExportedFile,
    ExportedPart,
    ExportFormat,
    ExportResult,
)
from duly.apps.documents.exports.plan import SelectedDocument, plan_documents, plan_hits
from duly.apps.documents.exports.service import EXPORT_DOCUMENTS, EXPORT_SEARCH, MAX_DOCUMENT_IDS
from duly.apps.documents.exports.writer import ExportWriter
from duly.apps.documents.folders.access import DocumentPrincipal, hidden_folders
from duly.apps.documents.folders.job_subjects import check_subject, private_subject, subject_from_actor
from duly.apps.documents.schema import fetch_all
from duly.apps.documents.search.models import Filters, Hit
from duly.apps.documents.search.search import search
from duly.core.outcome import Fail
from duly.core.policy import Category
from duly.jobs.application import App
from duly.worker.context.context import Context

_TIMEOUT = timedelta(hours=6)
_MAX_DOCUMENTS = 20_000
_MAX_HITS = 1_000
_SEARCH_PAGE_SIZE = 50
_PLAN = "plan"
DocumentIds = Annotated[list[UUID], Field(min_length=1, max_length=MAX_DOCUMENT_IDS)]
QueryText = Annotated[str, Field(min_length=1, max_length=1_000)]
Plan = tuple[Sequence[ExportBatch], int]
"""The files of an export, and the number of requested documents that are missing."""


def declare(app: App) -> None:
    """Add the job types to an application."""

    @app.job(EXPORT_DOCUMENTS, category=Category.TRANSFER, timeout=_TIMEOUT, subject=subject_from_actor)
    async def export_documents(
        ctx: Context,
        format: ExportFormat = "csv",  # noqa: A002 - the name of the parameter in the API
        document_ids: DocumentIds | None = None,
        node_id: UUID | None = None,
        doc_type: str | None = None,
        bom: bool = False,
    ) -> ExportResult:
        """Export documents by id, of a folder and those below it, of a type, or all visible ones."""
        ids = None if document_ids is None else sorted(set(document_ids))

        async def plan(principal: DocumentPrincipal) -> Plan:
            documents = await _select_documents(ctx, principal, ids, node_id, doc_type)
            return plan_documents(documents, format), len(ids or documents) - len(documents)

        return await _export(ctx, format, bom, plan)

    @app.job(EXPORT_SEARCH, category=Category.TRANSFER, timeout=_TIMEOUT, subject=subject_from_actor)
    async def export_search(
        ctx: Context,
        query: QueryText,
        filters: Filters | None = None,
        format: ExportFormat = "csv",  # noqa: A002
        bom: bool = False,
    ) -> ExportResult:
        """Export the hits of a search, best first."""

        async def plan(principal: DocumentPrincipal) -> Plan:
            return plan_hits(await _search(ctx, principal, query, filters or Filters()), format), 0

        return await _export(ctx, format, bom, plan)


async def _export(
    ctx: Context, form: ExportFormat, bom: bool, plan: Callable[[DocumentPrincipal], Awaitable[Plan]]
) -> ExportResult:
    principal = DocumentPrincipal(ctx.job.org_id, ctx.job.actor)
    check_subject(ctx.job.subject_id, private_subject(principal))
    batches, missing = await _saved_plan(ctx, lambda: plan(principal))
    writer = ExportWriter(ctx, principal, form, bom=bom)
    async for chunk in ctx.chunks(batches, key=lambda batch: batch.name):
        # Outside of the chunk: an error of the storage fails the attempt, which is retried.
        written = await writer.write(chunk.item)
        file = await ctx.artifact(chunk.item.name, written.data, content_type=CONTENT_TYPES[form])
        part = ExportedPart(
            name=file.name,
            sha256=file.sha256,
            size=file.size,
            documents=written.documents,
            rows=written.rows,
            left_out=written.left_out,
            warnings=dict(written.warnings),
        )
        async with chunk:
            chunk.result = part.model_dump(mode="json")
    results = await ctx.results()
    return _summarize(form, [ExportedPart.model_validate(results[batch.name]) for batch in batches], missing)


async def _saved_plan(ctx: Context, plan: Callable[[], Awaitable[Plan]]) -> Plan:
    """Plan once: a later attempt continues with the same plan, so that finished files stay finished."""
    saved = (await ctx.results()).get(_PLAN)
    if saved is None:
        batches, missing = await plan()
        saved = {
            "batches": [batch.model_dump(mode="json", exclude_none=True) for batch in batches],
            "missing": missing,
        }
        await ctx.partial(saved, key=_PLAN, percent=0)
    return [ExportBatch.model_validate(batch) for batch in saved["batches"]], saved["missing"]


async def _select_documents(
    ctx: Context,
    principal: DocumentPrincipal,
    document_ids: list[UUID] | None,
    node_id: UUID | None,
    doc_type: str | None,
) -> list[SelectedDocument]:
    async with ctx.session() as conn:
        values = {
            "org_id": principal.org_id,
            "document_ids": document_ids,
            "node_id": node_id,
            "doc_type": doc_type,
            "hidden_folders": await hidden_folders(conn, principal),
            "limit": _MAX_DOCUMENTS + 1,
        }
        rows = await fetch_all(conn, "exports/select_documents", values)
    if len(rows) > _MAX_DOCUMENTS:
        raise Fail(f"more than {_MAX_DOCUMENTS} documents: export them by folder", code="export.too_many")
    return [SelectedDocument(*row) for row in rows]


async def _search(ctx: Context, principal: DocumentPrincipal, query: str, filters: Filters) -> list[Hit]:
    """Return the first hits with their current text."""
    hits: list[Hit] = []
    async with ctx.session() as conn:
        while len(hits) < _MAX_HITS:
            found = await search(conn, principal, query, filters, limit=_SEARCH_PAGE_SIZE, offset=len(hits))
            hits += found.hits
            if not found.more or not found.hits:
                break
    return hits[:_MAX_HITS]


def _summarize(form: ExportFormat, parts: Sequence[ExportedPart], missing: int) -> ExportResult:
    warnings: Counter[str] = Counter()
    for part in parts:
        warnings.update(part.warnings)
    return ExportResult(
        format=form,
        documents=len({document_id for part in parts for document_id in part.documents}),
        rows=sum(part.rows for part in parts),
        left_out=missing + sum(part.left_out for part in parts),
        warnings=dict(warnings),
        artifacts=[ExportedFile(name=part.name, sha256=part.sha256, size=part.size) for part in parts],
    )
