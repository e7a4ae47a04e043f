"""The edge: what happens to every request before a route sees it, and to every answer after."""

from __future__ import annotations

import re
import secrets
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple

from fastapi import HTTPException
from starlette.requests import Request

from duly.client.context import Surroundings, Within
from duly.http import access, problems
from duly.observe import metrics

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}")
_EVERY_PATH = re.compile(".*", re.DOTALL)
_TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_SAFE = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


class TooLarge(HTTPException):
    """A body that has more bytes than its route takes."""

    def __init__(self, limit: Limit) -> None:
        said = f"the body has more than {limit.most} bytes"
        super().__init__(413, f"{said}; {limit.instead}" if limit.instead else said)


class Limit(NamedTuple):
    """How large the bodies of some paths may be."""

    paths: re.Pattern[str]
    most: int
    instead: str = ""
    """What to do with what is larger, if there is a way."""


class Edge:
    """Names the request, bounds its body, sets the headers that every answer has, and has it noted.

    Plain ASGI: it adds no task and no copy to streams.
    """

    def __init__(self, app: Asgi, *, body_max: int, limits: Sequence[Limit]) -> None:
        self._app = app
        self._limits = (*limits, Limit(_EVERY_PATH, body_max))
        """The first that fits counts."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        scope["duly.request_id"] = _request_id(headers.get(b"x-request-id"))
        scope["duly.traceparent"] = _traceparent(headers.get(b"traceparent"))
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        limit = next(one for one in self._limits if one.paths.fullmatch(path))

        started, began, status = time.perf_counter(), 0.0, 500

        async def sending(message: Message) -> None:
            nonlocal began, status
            if message["type"] == "http.response.start":
                began, status = time.perf_counter(), message["status"]
                message["headers"] = _completed(scope, message["headers"])
            await send(message)

        here = Surroundings(request_id=scope["duly.request_id"], traceparent=scope["duly.traceparent"])
        with Within(here):
            try:
                if _declared(headers) > limit.most:
                    await problems.of_http(Request(scope), TooLarge(limit))(scope, receive, sending)
                else:
                    await self._app(scope, _bounded(receive, limit), sending)
            finally:
                ended = time.perf_counter()
                access.note(scope, status, ended - started)
                route = access.route_of(scope) or ""
                metrics.answered(scope["method"], route, status, (began or ended) - started)


def _bounded(receive: Receive, limit: Limit) -> Receive:
    left = limit.most

    async def bounded() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise TooLarge(limit)
        return message

    return bounded


def _request_id(given: bytes | None) -> str:
    """The caller's own, if it is harmless; it is logged and kept with the jobs."""
    text = (given or b"").decode("latin-1")
    return text if _REQUEST_ID.fullmatch(text) else f"req-{uuid.uuid4().hex}"


def _traceparent(given: bytes | None) -> str:
    """The caller's trace, or the beginning of one: every job can be followed by it."""
    text = (given or b"").decode("latin-1").strip()
    if _TRACEPARENT.fullmatch(text):
        return text
    return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"


def _declared(headers: Mapping[bytes, bytes]) -> int:
    length = headers.get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0


def _completed(scope: Scope, headers: Headers) -> Headers:
    """With ours; what a route has set itself stays."""
    ours = (
        (b"x-request-id", scope["duly.request_id"].encode()),
        (b"traceparent", scope["duly.traceparent"].encode()),
        *_SAFE,
        *scope.get("duly.headers", ()),
    )
    there = {name for name, _ in headers}
    return [*headers, *(header for header in ours if header[0] not in there)]
