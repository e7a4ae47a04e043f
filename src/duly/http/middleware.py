"""Middleware of every request: request id and trace, size of the body, response headers, access log."""

from __future__ import annotations

import logging
import re
import secrets
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import HTTPException
from starlette.requests import Request

from duly.http.problems import http_error_response
from duly.jobs.request_context import ContextScope, RequestContext
from duly.observability import metrics

if TYPE_CHECKING:
    from duly.observability.traces import OpenSpan, Traces

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

access_log = logging.getLogger("duly.http.access")
_POLLED_ROUTES = frozenset({"/livez", "/readyz", "/metrics"})
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}")
_EVERY_PATH = re.compile(".*", re.DOTALL)
_TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


class BodyLimit(NamedTuple):
    """The size of the bodies of some paths."""

    paths: re.Pattern[str]
    max_bytes: int
    alternative: str = ""
    """How to send a larger body, if there is a way."""


class BodyTooLarge(HTTPException):
    """The body has more bytes than its route takes."""

    def __init__(self, limit: BodyLimit) -> None:
        message = f"the body has more than {limit.max_bytes} bytes"
        super().__init__(413, f"{message}; {limit.alternative}" if limit.alternative else message)


class RequestMiddleware:
    """Sets the request id and the trace, limits the body, completes the headers and logs the response.

    Plain ASGI: it adds neither a task nor a copy to streams.
    """

    def __init__(self, app: Asgi, *, body_max: int, limits: Sequence[BodyLimit]) -> None:
        self._app = app
        self._limits = (*limits, BodyLimit(_EVERY_PATH, body_max))
        """The first match wins."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        scope["duly.request_id"] = _request_id(headers.get(b"x-request-id"))
        scope["duly.traceparent"] = _traceparent(headers.get(b"traceparent"))
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        limit = next(limit for limit in self._limits if limit.paths.fullmatch(path))

        started, responded, status = time.perf_counter(), 0.0, 500

        async def send_completed(message: Message) -> None:
            nonlocal responded, status
            if message["type"] == "http.response.start":
                responded, status = time.perf_counter(), message["status"]
                message["headers"] = _complete_headers(scope, message["headers"])
            await send(message)

        context = RequestContext(request_id=scope["duly.request_id"], traceparent=scope["duly.traceparent"])
        with ContextScope(context):
            try:
                if _content_length(headers) > limit.max_bytes:
                    refusal = http_error_response(Request(scope), BodyTooLarge(limit))
                    await refusal(scope, receive, send_completed)
                else:
                    await self._app(scope, _limit_body(receive, limit), send_completed)
            finally:
                ended = time.perf_counter()
                _log_access(scope, status, ended - started)
                metrics.observe_request(
                    scope["method"], _route(scope) or "", status, (responded or ended) - started
                )


class TracingMiddleware:
    """Opens a span for each request; inside and in the response, the traceparent is this span's.

    Installed only where the application has traces.
    """

    def __init__(self, app: Asgi, *, traces: Traces) -> None:
        self._app = app
        self._traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        parent = dict(scope["headers"]).get(b"traceparent")
        with self._traces.request(scope["method"], parent and parent.decode("latin-1")) as span:
            scope["headers"] = _replace_traceparent(scope["headers"], span.traceparent)

            async def send_traced(message: Message) -> None:
                if message["type"] == "http.response.start":
                    _record_status(span, message["status"])
                await send(message)

            try:
                await self._app(scope, receive, send_traced)
            finally:
                _record_route(span, scope)


def _limit_body(receive: Receive, limit: BodyLimit) -> Receive:
    left = limit.max_bytes

    async def limited() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise BodyTooLarge(limit)
        return message

    return limited


def _request_id(header: bytes | None) -> str:
    """Return the client's id if it is harmless, since it is logged and stored with jobs; else a new one."""
    text = (header or b"").decode("latin-1")
    return text if _REQUEST_ID.fullmatch(text) else f"req-{uuid.uuid4().hex}"


def _traceparent(header: bytes | None) -> str:
    """Return the client's traceparent if it is valid, else a new one: every job belongs to a trace."""
    text = (header or b"").decode("latin-1").strip()
    if _TRACEPARENT.fullmatch(text):
        return text
    return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"


def _content_length(headers: Mapping[bytes, bytes]) -> int:
    length = headers.get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0


def _complete_headers(scope: Scope, headers: Headers) -> Headers:
    """Add the headers of every response; those that a route set itself stay."""
    defaults = (
        (b"x-request-id", scope["duly.request_id"].encode()),
        (b"traceparent", scope["duly.traceparent"].encode()),
        *_SECURITY_HEADERS,
        *scope.get("duly.headers", ()),
    )
    present = {name for name, _ in headers}
    return [*headers, *(header for header in defaults if header[0] not in present)]


def _route(scope: Mapping[str, Any]) -> str | None:
    """Return the template of the route, such as `/v1/jobs/{job_id}`; None if no route matched."""
    route = scope.get("route")
    return getattr(route, "path_format", None) or getattr(route, "path", None)


def _log_access(scope: Mapping[str, Any], status: int, seconds: float) -> None:
    """Log one line per request, by its route: the path has ids in it, and that of a result is a secret."""
    route = _route(scope) or "(no route)"
    level = logging.DEBUG if route in _POLLED_ROUTES else logging.INFO
    if not access_log.isEnabledFor(level):
        return
    method, org_id = scope["method"], scope.get("duly.org_id")
    fields = {
        "method": method,
        "route": route,
        "status": status,
        "duration_ms": round(seconds * 1000, 1),
        "request_id": scope["duly.request_id"],
        "org_id": org_id and str(org_id),
    }
    access_log.log(level, "%s %s %d", method, route, status, extra=fields)


def _replace_traceparent(headers: Headers, traceparent: str | None) -> Headers:
    if traceparent is None:
        return headers
    others = [header for header in headers if header[0] != b"traceparent"]
    return [*others, (b"traceparent", traceparent.encode())]


def _record_status(span: OpenSpan, status: int) -> None:
    span.update({"http.response.status_code": status})
    if status >= 500:
        span.fail(str(status))


def _record_route(span: OpenSpan, scope: Scope) -> None:
    """Describe a span by its route, for the reason that the access log has."""
    attributes = {"url.scheme": scope["scheme"], "duly.request_id": scope.get("duly.request_id", "")}
    if "duly.org_id" in scope:
        attributes["duly.org_id"] = str(scope["duly.org_id"])
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        span.update(attributes)
        return
    attributes["http.route"] = f"{scope.get('root_path', '')}{path}"
    span.update(attributes, name=f"{scope['method']} {attributes['http.route']}")
