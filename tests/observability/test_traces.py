"""Spans have the right parents, and contain only ids, names and codes."""

from __future__ import annotations

import asyncio
import sys
import threading
import uuid
from collections.abc import AsyncIterator

import psycopg
import pytest
from fastapi import FastAPI
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracer, SpanContext, Tracer

from duly import Actor, Duly, Fail, SyncContext, context
from duly.core.errors import ConfigurationError, DulyError
from duly.db.traced_cursor import statement_name
from duly.features.jobs.status_watcher import StatusWatcher
from duly.observability.traces import Traces
from duly.testing import FreshDatabase
from tests.http.conftest import caller, key_of
from tests.worker.working import ONE_ATTEMPT, settle_attempts, working

OTHER_TRACE = f"00-{'e' * 32}-{'f' * 16}-01"


class Spans:
    """The ended spans, by name."""

    def __init__(self, provider: TracerProvider) -> None:
        self._exporter = InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer: Tracer = provider.get_tracer("tests")

    @property
    def names(self) -> list[str]:
        return [span.name for span in self._exporter.get_finished_spans()]

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    def only(self, name: str) -> ReadableSpan:
        [span] = self.named(name)
        return span


def traceparent(span: ReadableSpan) -> str:
    return format_traceparent(span.context)


def parent(span: ReadableSpan) -> str:
    assert span.parent is not None
    return format_traceparent(span.parent)


def format_traceparent(ids: SpanContext) -> str:
    return f"00-{ids.trace_id:032x}-{ids.span_id:016x}-{ids.trace_flags:02x}"


@pytest.fixture
async def spans(app: Duly, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Spans]:
    """Record spans with a separate provider: the global one of a process cannot be replaced."""
    provider = TracerProvider()
    traces = Traces(provider.get_tracer("duly"), provider.force_flush)
    monkeypatch.setattr("duly.app_resources.traces_of", lambda _: traces)
    await app.close()  # its resources were opened without traces
    yield Spans(provider)
    provider.shutdown()


async def test_attempts_continue_the_trace_of_their_enqueue(
    app: Duly, acting: uuid.UUID, spans: Spans, fresh: FreshDatabase
) -> None:
    @app.job("a.one")
    async def one(n: int) -> None: ...

    with spans.tracer.start_as_current_span("mine") as mine:
        first = await one.enqueue(1)
        sync = await asyncio.to_thread(one.enqueue_sync, 2)
        in_trace, in_other_trace = await app.enqueue_many(
            [one.call(3), one.options(traceparent=OTHER_TRACE).call(4)]
        )
        deeper = f"00-{mine.get_span_context().trace_id:032x}-{'a' * 16}-01"
        # The traceparent of the incoming request: the current span is its child.
        below_request = await one.options(traceparent=deeper).enqueue(5)
        with context(traceparent=OTHER_TRACE):
            foreign = await one.enqueue(6)
        with psycopg.connect(fresh.direct_url) as conn:
            borrowed = await asyncio.to_thread(one.options(conn=conn).enqueue_sync, 7)
    root = spans.only("mine")
    jobs = [
        await app.handle(h.job_id).status() for h in (first, sync, in_trace, below_request, foreign, borrowed)
    ]
    enqueued = spans.named("enqueue a.one")
    assert [job.traceparent for job in jobs] == [traceparent(span) for span in enqueued]
    assert [parent(span) for span in enqueued] == [*[traceparent(root)] * 4, OTHER_TRACE, traceparent(root)]
    assert (await in_other_trace.status()).traceparent == OTHER_TRACE, (
        "a traceparent of another trace is stored unchanged"
    )
    assert enqueued[2].attributes["messaging.batch.message_count"] == 2
    singles = [span for span in enqueued[:5] if span is not enqueued[2]]
    assert [parent(span) for span in spans.named("jobs/enqueue_one")] == [traceparent(s) for s in singles]
    assert parent(spans.only("jobs/enqueue")) == traceparent(enqueued[2])


async def test_batched_enqueues_have_spans_of_their_own(app: Duly, acting: uuid.UUID, spans: Spans) -> None:
    @app.job("a.one")
    async def one(n: int) -> None: ...

    async def request(n: int) -> None:
        with spans.tracer.start_as_current_span(f"request {n}"):
            await one.enqueue(n)

    await app.resources()
    await asyncio.gather(*(request(n) for n in range(3)))
    enqueued = spans.named("enqueue a.one")
    assert sorted(map(parent, enqueued)) == sorted(traceparent(spans.only(f"request {n}")) for n in range(3))
    statements = [*spans.named("jobs/enqueue_one"), *spans.named("jobs/enqueue")]
    statement_parents = [parent(span) for span in statements]
    assert set(statement_parents) <= {traceparent(span) for span in enqueued}
    assert len(set(statement_parents)) == len(statement_parents) < 3, (
        "each batch is in the trace of its first job"
    )


async def test_errors_are_recorded_by_their_code_alone(app: Duly, acting: uuid.UUID, spans: Spans) -> None:
    @app.job("a.failing", retry=ONE_ATTEMPT)
    def failing(ctx: SyncContext, word: str) -> None:
        for chunk in ctx.chunks([word]):
            with chunk, ctx.session() as conn:
                conn.execute("select 1 / %s", [len(word) * 0])
        raise Fail(f"no {word}", code="a.refused")

    with pytest.raises(DulyError), context(org_id=uuid.uuid4(), actor=Actor.user("u")):
        await failing.enqueue("hunter2")
    await failing.enqueue("hunter2")
    await settle_attempts(app)
    refused, _ = spans.named("enqueue a.failing")
    assert refused.attributes["error.type"] == "org.unknown"
    for name, code in {
        "select": "DivisionByZero",
        "chunk": "DivisionByZero",
        "attempt a.failing": "division_by_zero",
    }.items():
        span = spans.only(name)
        assert not span.status.is_ok, name
        assert (span.attributes["error.type"], span.events, span.status.description) == (code, (), None)
    assert spans.only("attempt a.failing").attributes["duly.outcome"] == "dead"
    assert not [span for name in spans.names for span in spans.named(name) if "hunter2" in span.to_json()]


async def test_a_worker_traces_only_its_attempts(app: Duly, acting: uuid.UUID, spans: Spans) -> None:
    @app.job("a.one")
    async def one() -> None:
        assert trace.get_current_span().is_recording()

    with spans.tracer.start_as_current_span("program"):
        async with working(app):
            with context(traceparent=OTHER_TRACE):
                handle = await one.enqueue()
            await handle.wait()
            watch = StatusWatcher(app)  # polls for all waiting requests, in the trace of none
            assert (await watch.wait_for_event(acting, handle.job_id, 0)).event_seq
            await watch.close()
    attempt = spans.only("attempt a.one")
    assert parent(attempt) == traceparent(spans.only("enqueue a.one"))
    assert attempt.attributes["duly.org_id"] == str(acting)
    assert not {"jobs/peek", "jobs/claim", "jobs/complete", "jobs/promote", "events/heads"} & set(spans.names)


async def test_a_failing_span_processor_does_not_fail_the_job(
    app: Duly, acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(SpanProcessor):
        def on_start(self, span: Span, parent_context: Context | None = None) -> None:
            if span.name == "attempt a.one":
                raise RuntimeError("broken at the start")

        def on_end(self, span: ReadableSpan) -> None:
            if span.name == "attempt a.two":
                raise RuntimeError("broken at the end")

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Broken())
    traces = Traces(provider.get_tracer("duly"), provider.force_flush)
    monkeypatch.setattr("duly.app_resources.traces_of", lambda _: traces)
    await app.close()

    async def nothing() -> None: ...

    handles = [await app.job(name)(nothing).enqueue() for name in ("a.one", "a.two")]
    await settle_attempts(app, 2)
    assert [(await handle.status()).outcome for handle in handles] == ["succeeded", "succeeded"]
    assert "broken at the start" in caplog.text
    assert "broken at the end" in caplog.text


async def test_request_spans_are_named_by_route_also_when_mounted(
    app: Duly, org: uuid.UUID, spans: Spans
) -> None:
    outer, permalink = FastAPI(), str(uuid.uuid4())
    outer.mount("/duly", app.http_app())
    async with caller(outer, await key_of(app, org)) as client:
        response = await client.get(f"/duly/v1/results/{permalink}")
        await client.request("BREW", "/duly/nothing?x=hunter2")
    span = spans.only("GET /duly/v1/results/{result_id}")
    assert span.attributes["http.response.status_code"] == response.status_code == 404
    assert (response.headers["traceparent"], span.parent) == (traceparent(span), None)
    assert spans.only("HTTP").attributes["http.request.method"] == "_OTHER"
    exported = [span.to_json() for name in spans.names for span in spans.named(name)]
    assert not [text for text in exported if permalink in text or "hunter2" in text]


async def test_without_a_provider_a_traceparent_is_passed_on_unchanged(
    app: Duly, acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job("a.one")
    async def one(n: int) -> None: ...

    hanging = threading.Event()
    unexported = Traces(NoOpTracer(), hanging.wait)
    monkeypatch.setattr("duly.app_resources.traces_of", lambda _: unexported)
    await app.close()
    with_traceparent = one.options(traceparent=OTHER_TRACE)
    first, second = await app.enqueue_many([with_traceparent.call(1), one.call(2)])
    assert [(await handle.status()).traceparent for handle in (first, second)] == [OTHER_TRACE, None]
    assert (await (await with_traceparent.enqueue(3)).status()).traceparent == OTHER_TRACE
    unexported.flush(timeout=0.01)  # a collector that does not respond blocks no caller
    hanging.set()


def test_a_statement_is_named_and_its_text_never_recorded() -> None:
    assert statement_name("  Insert into people values ('Ada')") == "insert"
    for statement in ("/* Ada */ select 1", "'Ada'", b"select 'Ada'", psycopg.sql.SQL("select 1"), ""):
        assert statement_name(statement) == "statement"


async def test_traces_without_their_extra_are_refused_by_name(
    fresh: FreshDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "duly.observability.traces")
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    app = Duly(database_url=fresh.url, traces="otlp")
    with pytest.raises(ConfigurationError, match=r"traces: .*duly\[traces\]"):
        await app.resources()
