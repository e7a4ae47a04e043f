"""Spans: what took how long, from a request to the last statement of its jobs, over all processes.

Needs the extra `traces`, and is imported only where traces are wanted. Spans carry ids, names and codes;
never a payload, a parameter, a message or a path, since a path may hold the key to a result.
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

from duly.model.errors import DulyError
from duly.model.verdict import Cancel, Fail, Retry, Snooze

Whither = Literal["otlp", "global"]
Attributes = Mapping[str, str | int | bool]
_W3C = TraceContextTextMapPropagator()
_METHODS = {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"}
_LONGEST_CODE = 200
_PATIENCE = 5.0


@cache
def traces_to(whither: Whither) -> Traces:
    """The traces of this process: by a provider of our own, or by the one that the program has set."""
    if whither == "global":
        # One that is set later is found too.
        return Traces(trace.get_tracer("duly", version("duly")), lambda: _flush(trace.get_tracer_provider()))
    provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    made = Traces(provider.get_tracer("duly", version("duly")), provider.force_flush)
    atexit.register(made.flush)  # its own end would wait for as long as the collector likes
    return made


class Opened:
    """A span that has not ended."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    @property
    def traceparent(self) -> str | None:
        """What makes others go on below it; None if nobody is to know of it."""
        carrier: dict[str, str] = {}
        _W3C.inject(carrier, set_span_in_context(self._span))
        return carrier.get("traceparent")

    def tell(self, attributes: Attributes, *, name: str | None = None) -> None:
        """What is known only now."""
        self._span.set_attributes(attributes)
        if name is not None:
            self._span.update_name(name)

    def fail(self, code: str) -> None:
        """It went wrong. The code alone: a message may hold anything."""
        self._span.set_attribute("error.type", code[:_LONGEST_CODE])
        self._span.set_status(StatusCode.ERROR)

    def end(self) -> None:
        """It is over."""
        self._span.end()


class Traces:
    """Makes spans. Whether one is kept is for the sampler to say, which follows its parent."""

    def __init__(self, tracer: trace.Tracer, flush: Callable[[], object]) -> None:
        self._tracer = tracer
        self._flush = flush
        self._sending = threading.Thread()
        self._until = 0.0

    def request(self, method: str, traceparent: str | None) -> AbstractContextManager[Opened]:
        """Around a request that somebody sent; its route is told when it is known."""
        known = method if method in _METHODS else "_OTHER"
        name = method if known == method else "HTTP"
        return self._around(name, SpanKind.SERVER, {"http.request.method": known}, _parent(traceparent))

    def enqueue(
        self, name: str, attributes: Attributes, traceparent: str | None
    ) -> AbstractContextManager[Opened]:
        """Around the writing of jobs; they go on below it."""
        said = {"messaging.system": "duly", "messaging.operation.type": "send", **attributes}
        return self._around(name, SpanKind.PRODUCER, said, _parent(traceparent))

    def attempt(self, name: str, attributes: Attributes, traceparent: str | None) -> Opened:
        """An attempt, for the rest of the running task: below what enqueued its job, not what is around."""
        said = {"messaging.system": "duly", "messaging.operation.type": "process", **attributes}
        parent = _below(traceparent)
        span = self._tracer.start_span(name, parent, SpanKind.CONSUMER, said)
        attach(set_span_in_context(span, parent))
        return Opened(span)

    def carried_on(self, name: str, traceparent: str) -> AbstractContextManager[Opened]:
        """Around what another process has asked of this one."""
        return self._around(name, SpanKind.INTERNAL, {}, _below(traceparent))

    def part(self, name: str, attributes: Attributes | None = None) -> AbstractContextManager[Opened]:
        """Around a part of the work at hand."""
        return self._around(name, SpanKind.INTERNAL, attributes or {})

    def statement(self, name: str) -> AbstractContextManager[object]:
        """Around a statement. What the engine asks by itself, again and again, belongs to no trace."""
        if not trace.get_current_span().is_recording():
            return nullcontext()
        said = {"db.system.name": "postgresql", "db.query.summary": name}
        return self._around(name, SpanKind.CLIENT, said)

    @staticmethod
    def here() -> Context:
        """Where we are, to be handed to another task."""
        return get_current()

    @staticmethod
    @contextmanager
    def within(place: Context) -> Iterator[None]:
        """Be there."""
        token = attach(place)
        try:
            yield
        finally:
            detach(token)

    @staticmethod
    def is_elsewhere(traceparent: str | None, ours: str | None) -> bool:
        """Whether somebody names another trace than ours."""
        said, known = _read(traceparent), _read(ours)
        return said is not None and (known is None or said.trace_id != known.trace_id)

    def flush(self, patience: float = _PATIENCE) -> None:
        """Send what is left; a collector that does not answer is waited for once, and no longer than this."""
        if not self._sending.is_alive():
            self._sending = threading.Thread(target=self._flush, name="duly-traces", daemon=True)
            self._until = time.monotonic() + patience
            try:
                self._sending.start()
            except RuntimeError:  # the interpreter is about to end, and has no more threads
                self._flush()
                return
        self._sending.join(max(self._until - time.monotonic(), 0))

    @contextmanager
    def _around(
        self, name: str, kind: SpanKind, attributes: Attributes, parent: Context | None = None
    ) -> Iterator[Opened]:
        opened = Opened(span := self._tracer.start_span(name, parent, kind, attributes))
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
    """The span we are in, which is the deepest known; unless another trace is named."""
    said, around = _read(traceparent), trace.get_current_span().get_span_context()
    if said is None or (around.is_valid and around.trace_id == said.trace_id):
        return None
    return set_span_in_context(NonRecordingSpan(said))


def _below(traceparent: str | None) -> Context:
    """Nothing but this parent."""
    said = _read(traceparent)
    return Context() if said is None else set_span_in_context(NonRecordingSpan(said), Context())


def _read(traceparent: str | None) -> SpanContext | None:
    if traceparent is None:
        return None
    found = trace.get_current_span(_W3C.extract({"traceparent": traceparent})).get_span_context()
    return found if found.is_valid else None


def _code(error: BaseException) -> str:
    return str(error.code) if isinstance(error, DulyError | Fail | Retry) else type(error).__name__


def _resource() -> Resource:
    """As `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say; without a name it is ours."""
    made = Resource.create()
    nameless = str(made.attributes[SERVICE_NAME]).startswith("unknown_service")
    return made.merge(Resource({SERVICE_NAME: "duly"})) if nameless else made


def _flush(provider: trace.TracerProvider) -> None:
    force = getattr(provider, "force_flush", None)
    if force is not None:
        force()
