"""An application with its own tracer provider: its processes write spans to one file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from duly import Context, Duly, Retry, RetryPolicy, SyncContext


class FileSpanExporter(SpanExporter):
    """Writes one line of JSON per span."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with self._path.open("a") as file:
            for span in spans:
                file.write(json.dumps({**json.loads(span.to_json()), "pid": os.getpid()}) + "\n")
        return SpanExportResult.SUCCESS


if "SPANS" in os.environ:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(os.environ["SPANS"])))
    trace.set_tracer_provider(provider)

tracer = trace.get_tracer("shop")
app = Duly()
TWICE = RetryPolicy(max_attempts=2, delays=(timedelta(milliseconds=1),))


@app.job("shop.nothing")
async def nothing() -> None: ...


@app.job("shop.async", retry=TWICE)
async def async_job(ctx: Context, words: list[str]) -> str:
    if ctx.attempt == 1:
        raise Retry(f"not yet {words}", code="shop.later")
    async for chunk in ctx.chunks(words):
        async with chunk:
            with tracer.start_as_current_span("mine"):
                chunk.result = chunk.item
    async with ctx.session() as conn:
        await conn.execute("select %s::text", words)
    await ctx.enqueue(sync_job.call(words))
    return words[0]


@app.job("shop.sync")
def sync_job(ctx: SyncContext, words: list[str]) -> None:
    for chunk in ctx.chunks(words):
        with chunk, ctx.session() as conn:
            conn.execute("select %s::text", words)
    with ctx.transaction():
        ctx.enqueue(isolated_job.call(words))


@app.job("shop.isolated", isolation="process")
def isolated_job(ctx: SyncContext, words: list[str]) -> None:
    with tracer.start_as_current_span("mine"):
        ctx.partial(words)
