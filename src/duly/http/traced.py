"""A span for every request; whatever is done for it lies below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duly.http.edge import Asgi, Headers, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from duly.observe.traces import Opened, Traces

_TRACEPARENT = b"traceparent"


class Traced:
    """Goes on with the caller's trace. To all inside, and in the answer, its own span is the traceparent.

    Only there if traces are wanted.
    """

    def __init__(self, app: Asgi, *, traces: Traces) -> None:
        self._app = app
        self._traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(_TRACEPARENT)
        with self._traces.request(scope["method"], given and given.decode("latin-1")) as span:
            scope["headers"] = _with(scope["headers"], span.traceparent)

            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    _answered(span, message["status"])
                await send(message)

            try:
                await self._app(scope, receive, sending)
            finally:
                _describe(span, scope)


def _with(headers: Headers, traceparent: str | None) -> Headers:
    if traceparent is None:
        return headers
    others = [header for header in headers if header[0] != _TRACEPARENT]
    return [*others, (_TRACEPARENT, traceparent.encode())]


def _answered(span: Opened, status: int) -> None:
    span.tell({"http.response.status_code": status})
    if status >= 500:
        span.fail(str(status))


def _describe(span: Opened, scope: Scope) -> None:
    """By its route: the path itself has ids in it, and one of a result is a secret."""
    said = {"url.scheme": scope["scheme"], "duly.request_id": scope.get("duly.request_id", "")}
    if "duly.org_id" in scope:
        said["duly.org_id"] = str(scope["duly.org_id"])
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        span.tell(said)
        return
    said["http.route"] = f"{scope.get('root_path', '')}{path}"
    span.tell(said, name=f"{scope['method']} {said['http.route']}")
