"""OpenTelemetry spans, from a request to the last statement of its jobs, across all processes.

Needs the extra `traces`, and is imported only if tracing is on. Spans carry ids, names and codes; never a
payload, a parameter, a message or a path, because a path may contain the key to a result.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib.metadata import version
from typing import Literal

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from duly.core.errors import DulyError
from duly.core.outcome import Cancel, Fail, Retry, Snooze

TraceDestination = Literal["otlp", "global"]
Attributes = Mapping[str, str | int | bool]
_W3C = TraceContextTextMapPropagator()
_METHODS = {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"}
_MAX_CODE_LENGTH = 200
_FLUSH_TIMEOUT = 5.0


@cache
def traces_to(destination: TraceDestination) -> Traces:
    """Return the traces of this process: by a provider of our own, or by the one that the program has set."""
    if destination == "global":
        # A provider that is set later is found, too.
        return Traces(trace.get_tracer("duly", version("duly")), lambda: _flush(trace.get_tracer_provider()))
    provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    traces = Traces(provider.get_tracer("duly", version("duly")), provider.force_flush)
    atexit.register(traces.flush)  # the provider's own shutdown would wait for the collector without a limit
    return traces


class OpenSpan:
    """A span that has not ended yet."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    @property
    def traceparent(self) -> str | None:
        """The W3C header that makes other spans its children; None if the span is not valid."""
        carrier: dict[str, str] = {}
        _W3C.inject(carrier, set_span_in_context(self._span))
        return carrier.get("traceparent")

    def update(self, attributes: Attributes, *, name: str | None = None) -> None:
        """Set attributes, and the name, that are known only now."""
        self._span.set_attributes(attributes)
        if name is not None:
            self._span.update_name(name)

    def fail(self, code: str) -> None:
        """Mark the span as failed. With the code only: a message may contain anything."""
        self._span.set_attribute("error.type", code[:_MAX_CODE_LENGTH])
        self._span.set_status(StatusCode.ERROR)

    def end(self) -> None:
        """End the span."""
        self._span.end()


class Traces:
    """Creates spans. The sampler, which follows the parent, decides which are exported."""

    def __init__(self, tracer: trace.Tracer, flush: Callable[[], object]) -> None:
        self._tracer = tracer
        self._flush = flush
        self._sending = threading.Thread()
        self._deadline = 0.0

    def request(self, method: str, traceparent: str | None) -> AbstractContextManager[OpenSpan]:
        """Return the span of an HTTP request; its route is set when it is known."""
        known = method if method in _METHODS else "_OTHER"
        name = method if known == method else "HTTP"
        return self._span(name, SpanKind.SERVER, {"http.request.method": known}, _parent(traceparent))

    def enqueue(
        self, name: str, attributes: Attributes, traceparent: str | None
    ) -> AbstractContextManager[OpenSpan]:
        """Return the span of an enqueue, parent of the attempts of its jobs."""
        values = {"messaging.system": "duly", "messaging.operation.type": "send", **attributes}
        return self._span(name, SpanKind.PRODUCER, values, _parent(traceparent))

    def attempt(self, name: str, attributes: Attributes, traceparent: str | None) -> OpenSpan:
        """Open the span of an attempt for the rest of the task, below the span that enqueued its job."""
        values = {"messaging.system": "duly", "messaging.operation.type": "process", **attributes}
        parent = _below(traceparent)
        span = self._tracer.start_span(name, parent, SpanKind.CONSUMER, values)
        attach(set_span_in_context(span, parent))
        return OpenSpan(span)

    def continue_trace(self, name: str, traceparent: str) -> AbstractContextManager[OpenSpan]:
        """Return a span that continues the trace of another process."""
        return self._span(name, SpanKind.INTERNAL, {}, _below(traceparent))

    def child(self, name: str, attributes: Attributes | None = None) -> AbstractContextManager[OpenSpan]:
        """Return a child of the current span."""
        return self._span(name, SpanKind.INTERNAL, attributes or {})

    def statement(self, name: str) -> AbstractContextManager[object]:
        """Return the span of a statement; none outside of a trace, as for the engine's own polling."""
        if not trace.get_current_span().is_recording():
            return nullcontext()
        values = {"db.system.name": "postgresql", "db.query.summary": name}
        return self._span(name, SpanKind.CLIENT, values)

    @staticmethod
    def current_context() -> Context:
        """Return the current context, to be passed to another task."""
        return get_current()

    @staticmethod
    @contextmanager
    def use_context(context: Context) -> Iterator[None]:
        """Make a context of another task the current one."""
        token = attach(context)
        try:
            yield
        finally:
            detach(token)

    @staticmethod
    def is_other_trace(traceparent: str | None, ours: str | None) -> bool:
        """Whether a header names another trace than ours."""
        theirs, known = _parse(traceparent), _parse(ours)
        return theirs is not None and (known is None or theirs.trace_id != known.trace_id)

    def flush(self, timeout: float = _FLUSH_TIMEOUT) -> None:
        """Export pending spans; wait for a collector that does not answer once, for at most `timeout`."""
        if not self._sending.is_alive():
            self._sending = threading.Thread(target=self._flush, name="duly-traces", daemon=True)
            self._deadline = time.monotonic() + timeout
            try:
                self._sending.start()
            except RuntimeError:  # the interpreter is about to end, and has no more threads
                self._flush()
                return
        self._sending.join(max(self._deadline - time.monotonic(), 0))

    @contextmanager
    def _span(
        self, name: str, kind: SpanKind, attributes: Attributes, parent: Context | None = None
    ) -> Iterator[OpenSpan]:
        opened = OpenSpan(span := self._tracer.start_span(name, parent, kind, attributes))
        token = attach(set_span_in_context(span, parent))
        try:
            yield opened
        except BaseException as error:
            if not isinstance(error, Snooze | Cancel):
                opened.fail(_code(error))
            raise
        finally:
            detach(token)
            opened.end()


def _parent(traceparent: str | None) -> Context | None:
    """Return the context of a header that names another trace; None for the current span."""
    parent, current = _parse(traceparent), trace.get_current_span().get_span_context()
    if parent is None or (current.is_valid and current.trace_id == parent.trace_id):
        return None
    return set_span_in_context(NonRecordingSpan(parent))


def _below(traceparent: str | None) -> Context:
    """Return a context with nothing but this parent."""
    parent = _parse(traceparent)
    return Context() if parent is None else set_span_in_context(NonRecordingSpan(parent), Context())


def _parse(traceparent: str | None) -> SpanContext | None:
    if traceparent is None:
        return None
    context = trace.get_current_span(_W3C.extract({"traceparent": traceparent})).get_span_context()
    return context if context.is_valid else None


def _code(error: BaseException) -> str:
    return str(error.code) if isinstance(error, DulyError | Fail | Retry) else type(error).__name__


def _resource() -> Resource:
    """Return the resource of `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`; named `duly` by default."""
    resource = Resource.create()
    nameless = str(resource.attributes[SERVICE_NAME]).startswith("unknown_service")
    return resource.merge(Resource({SERVICE_NAME: "duly"})) if nameless else resource


def _flush(provider: trace.TracerProvider) -> None:
    force = getattr(provider, "force_flush", None)
    if force is not None:
        force()
