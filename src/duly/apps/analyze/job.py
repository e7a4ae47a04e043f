"""The job type `analyze.run`."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from duly.apps.analyze.aggregate import summarize
from duly.apps.analyze.analysis import Analysis
from duly.apps.analyze.markdown import to_markdown
from duly.apps.analyze.report import MARKDOWN_FILE, REPORT_FILE, Part, Report, Summary
from duly.apps.analyze.request import AnalyzeRequest, Language, Module, Modules, Sources, cost
from duly.apps.analyze.sources import SourceReader
from duly.core.policy import Category
from duly.jobs.application import App
from duly.jobs.job import Job
from duly.worker.context.context import Context

JOB_TYPE = "analyze.run"
_TIMEOUT = timedelta(minutes=30)


def declare(app: App) -> Job[..., Summary]:
    """Declare the job type, or return it if it is declared."""
    if JOB_TYPE in app.registry:
        return app.registry.get(JOB_TYPE)
    return app.job(JOB_TYPE, category=Category.PLANNING, timeout=_TIMEOUT, allows_partial=True)(run)


async def run(
    ctx: Context, sources: Sources, modules: Modules = tuple(Module), language: Language = "auto"
) -> Summary:
    """Analyze each source by each module, a chunk each; then store the report and return its summary."""
    request = AnalyzeRequest(sources=sources, modules=modules, language=language)
    analysis = Analysis(request, SourceReader(ctx.services.blobs, ctx.job.org_id))
    await analysis.prepare()
    async for chunk in ctx.chunks(request.chunks, key=lambda chunk: chunk.key):
        # Outside of the chunk: a storage error fails the attempt, which is retried.
        source = await analysis.read(chunk.item.source)
        async with chunk:
            chunk.result = (await analysis.analyze(source, chunk.item.module)).as_json
    ctx.check_canceled()
    report = await analysis.report(await asyncio.to_thread(_parse_parts, await ctx.results()))
    await _store_report(ctx, report, language)
    ctx.count(bytes=cost(request), warnings=report.totals.unreadable)
    return summarize(report, files=(REPORT_FILE, MARKDOWN_FILE))


def _parse_parts(results: dict[str, Any]) -> list[Part]:
    return [Part.model_validate(value) for value in results.values()]


async def _store_report(ctx: Context, report: Report, language: str) -> None:
    data = await asyncio.to_thread(lambda: report.model_dump_json(exclude_none=True, indent=1).encode())
    page = await asyncio.to_thread(lambda: to_markdown(report, language).encode())
    await ctx.artifact(REPORT_FILE, data, content_type="application/json")
    await ctx.artifact(MARKDOWN_FILE, page, content_type="text/markdown; charset=utf-8")
