"""The job types `export_documents` and `export_search`: a plan, then file by file, each a chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Annotated
from uuid import UUID

from pydantic import Field

from duly.apps.documents.exports.models import CONTENT_TYPES, Batch, Exported, ExportedFile, Format, Part
from duly.apps.documents.exports.plan import Chosen, of_documents, of_hits
from duly.apps.documents.exports.service import DOCUMENTS, MOST_IDS, SEARCH
from duly.apps.documents.exports.writer import Maker
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
_MOST_DOCUMENTS = 20_000
_MOST_HITS = 1_000
_PAGE = 50
_PLAN = "plan"
Ids = Annotated[list[UUID], Field(min_length=1, max_length=MOST_IDS)]
Query = Annotated[str, Field(min_length=1, max_length=1_000)]
Planned = tuple[Sequence[Batch], int]


def declare(app: App) -> None:
    """Add the job types to an application."""

    @app.job(DOCUMENTS, category=Category.TRANSFER, timeout=_TIMEOUT, subject=subject_from_actor)
    async def export_documents(
        ctx: Context,
        format: Format = "csv",  # noqa: A002 - what it is called
        document_ids: Ids | None = None,
        node_id: UUID | None = None,
        doc_type: str | None = None,
        bom: bool = False,
    ) -> Exported:
        """Give out documents: named ones, those of a folder and below, of a type, or all."""
        wanted = None if document_ids is None else sorted(set(document_ids))

        async def plan() -> Planned:
            chosen = await _chosen(ctx, wanted, node_id, doc_type)
            return of_documents(chosen, format), len(wanted or chosen) - len(chosen)

        return await _exported(ctx, format, bom, plan)

    @app.job(SEARCH, category=Category.TRANSFER, timeout=_TIMEOUT, subject=subject_from_actor)
    async def export_search(
        ctx: Context,
        query: Query,
        filters: Filters | None = None,
        format: Format = "csv",  # noqa: A002
        bom: bool = False,
    ) -> Exported:
        """Give out what a search finds, the best first."""

        async def plan() -> Planned:
            return of_hits(await _hits(ctx, query, filters or Filters()), format), 0

        return await _exported(ctx, format, bom, plan)


async def _exported(
    ctx: Context,
    form: Format,
    bom: bool,
    plan: Callable[[], Awaitable[Planned]],
) -> Exported:
    who = DocumentPrincipal(ctx.job.org_id, ctx.job.actor)
    check_subject(ctx.job.subject_id, private_subject(who))
    batches, missing = await _planned(ctx, plan)
    maker = Maker(ctx, who, form, bom=bom)
    async for chunk in ctx.chunks(batches, key=lambda batch: batch.name):
        # Outside of the chunk: storage that does not answer is the attempt's trouble, and is tried again.
        made = await maker.make(chunk.item)
        file = await ctx.artifact(chunk.item.name, made.data, content_type=CONTENT_TYPES[form])
        async with chunk:
            chunk.result = Part(
                name=file.name, sha256=file.sha256, size=file.size, documents=made.documents, rows=made.rows,
                left_out=made.left_out, warnings=dict(made.warnings),
            ).model_dump(mode="json")  # fmt: skip
    kept = await ctx.results()
    return _summed_up(form, [Part.model_validate(kept[batch.name]) for batch in batches], missing)


async def _planned(ctx: Context, plan: Callable[[], Awaitable[Planned]]) -> Planned:
    """Made once: a later attempt goes on with the same, so that what is done stays done."""
    kept = (await ctx.results()).get(_PLAN)
    if kept is None:
        batches, missing = await plan()
        kept = {"batches": [batch.model_dump(mode="json", exclude_none=True) for batch in batches]}
        kept |= {"missing": missing}
        await ctx.partial(kept, key=_PLAN, percent=0)
    return [Batch.model_validate(batch) for batch in kept["batches"]], kept["missing"]


async def _chosen(
    ctx: Context, document_ids: list[UUID] | None, node_id: UUID | None, doc_type: str | None
) -> list[Chosen]:
    who = DocumentPrincipal(ctx.job.org_id, ctx.job.actor)
    asked = {"document_ids": document_ids, "node_id": node_id, "doc_type": doc_type}
    async with ctx.session() as conn:
        values = {**asked, "org_id": who.org_id, "hidden_folders": await hidden_folders(conn, who)}
        found = [
            Chosen(*row)
            for row in await fetch_all(conn, "exports/choose", {**values, "limit": _MOST_DOCUMENTS + 1})
        ]
    if len(found) > _MOST_DOCUMENTS:
        raise Fail(f"more than {_MOST_DOCUMENTS} documents: export them by folder", code="export.too_many")
    return found


async def _hits(ctx: Context, query: str, filters: Filters) -> list[Hit]:
    """The first hits, page by page; the text of each as it is found now."""
    who = DocumentPrincipal(ctx.job.org_id, ctx.job.actor)
    hits: list[Hit] = []
    async with ctx.session() as conn:
        while len(hits) < _MOST_HITS:
            found = await search(conn, who, query, filters, limit=_PAGE, offset=len(hits))
            hits += found.hits
            if not found.more or not found.hits:
                break
    return hits[:_MOST_HITS]


def _summed_up(form: Format, parts: Sequence[Part], missing: int) -> Exported:
    warnings: Counter[str] = Counter()
    for part in parts:
        warnings.update(part.warnings)
    return Exported(
        format=form,
        documents=len({document_id for part in parts for document_id in part.documents}),
        rows=sum(part.rows for part in parts),
        left_out=missing + sum(part.left_out for part in parts),
        warnings=dict(warnings),
        artifacts=[ExportedFile(name=part.name, sha256=part.sha256, size=part.size) for part in parts],
    )
