"""The job type `analyze.run`."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from duly.apps.analyze.aggregate import summed_up
from duly.apps.analyze.documents import Library
from duly.apps.analyze.pages import as_markdown
from duly.apps.analyze.report import READABLE, REPORT, Part, Report, Summary
from duly.apps.analyze.request import AnalyzeRequest, Language, Module, Modules, Sources, cost
from duly.apps.analyze.work import Desk
from duly.core.policy import Category
from duly.jobs.application import App
from duly.jobs.job import Job
from duly.worker.context.context import Context

JOB_TYPE = "analyze.run"
_TIMEOUT = timedelta(minutes=30)


def declare(app: App) -> Job[..., Summary]:
    """Add the job type to an application, or find it there."""
    if JOB_TYPE in app.registry:
        return app.registry.get(JOB_TYPE)
    return app.job(JOB_TYPE, category=Category.PLANNING, timeout=_TIMEOUT, allows_partial=True)(run)


async def run(
    ctx: Context, sources: Sources, modules: Modules = tuple(Module), language: Language = "auto"
) -> Summary:
    """Each source by each module, one chunk each; then the report, and its summary as the result."""
    request = AnalyzeRequest(sources=sources, modules=modules, language=language)
    desk = Desk(request, Library(ctx.services.blobs, ctx.job.org_id))
    await desk.prepare()
    async for chunk in ctx.chunks(request.pieces, key=lambda piece: piece.key):
        # Outside of the chunk: storage that does not answer is the attempt's trouble, and is tried again.
        document = await desk.document(chunk.item.source)
        async with chunk:
            chunk.result = (await desk.part(document, chunk.item.module)).as_json
    ctx.check_canceled()
    report = await desk.report(await asyncio.to_thread(_parts, await ctx.results()))
    await _keep(ctx, report, language)
    ctx.count(bytes=cost(request), warnings=report.totals.unreadable)
    return summed_up(report, files=(REPORT, READABLE))


def _parts(results: dict[str, Any]) -> list[Part]:
    return [Part.model_validate(value) for value in results.values()]


async def _keep(ctx: Context, report: Report, language: str) -> None:
    data = await asyncio.to_thread(lambda: report.model_dump_json(exclude_none=True, indent=1).encode())
    page = await asyncio.to_thread(lambda: as_markdown(report, language).encode())
    await ctx.artifact(REPORT, data, content_type="application/json")
    await ctx.artifact(READABLE, page, content_type="text/markdown; charset=utf-8")
