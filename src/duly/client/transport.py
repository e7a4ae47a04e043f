"""The steps of operations, and how they run over httpx: blocking, or async."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Generic, Self, TypeVar

import httpx

from duly.core.errors import ConfigurationError

T = TypeVar("T")
_CONNECT_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """The URL of the service and the API key, which no repr contains."""

    url: str
    key: str = field(repr=False)

    @classmethod
    def resolve(cls, url: str | None, key: str | None) -> Self:
        """Return the arguments, or what the environment has; errors name the wrong one, without its value."""
        url = url or os.environ.get("DULY_API_URL", "")
        key = key or os.environ.get("DULY_API_KEY", "")
        if not url:
            raise ConfigurationError("missing", field="base_url", fix="pass it, or set DULY_API_URL")
        if not key:
            raise ConfigurationError("missing", field="key", fix="pass it, or set DULY_API_KEY")
        if not _is_service_url(url):
            raise ConfigurationError(
                "not a URL of a service", field="base_url", fix="write https://host, without user and query"
            )
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise ConfigurationError("not an API key", field="key", fix="pass the text of the key alone")
        return cls(url.rstrip("/"), key)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        return {"authorization": f"Bearer {self.key}", "accept": "application/json, application/problem+json"}


def _is_service_url(text: str) -> bool:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return False
    return url.scheme in ("http", "https") and bool(url.host) and not url.userinfo and not url.query


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """A request that may be sent several times."""

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    idempotent: bool = True
    """Whether the service executes it once, however often it is sent."""
    extra_timeout: float = 0.0
    """Seconds that the response may take longer, because the service was asked to wait."""


@dataclass(frozen=True, slots=True)
class SendRequest:
    """Send a request. The reply is the whole response, or its head if the body goes to a sink."""

    request: RequestSpec
    timeout: float
    sink: BinaryIO | None = None


@dataclass(frozen=True, slots=True)
class OpenStream:
    """Send a request. The reply is the head of the response; `ReadChunk` returns its body."""

    request: RequestSpec
    timeout: float


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """Read the next bytes of the open stream; None at its end."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """Pause the operation."""

    seconds: float


@dataclass(frozen=True, slots=True)
class RunBlocking:
    """Call a function that blocks, such as reading a file."""

    function: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Emit:
    """Hand a value to the caller, and continue."""

    value: Any


Step = SendRequest | OpenStream | ReadChunk | Sleep | RunBlocking | Emit
Operation = Generator[Step, Any, T]


class OperationRun(Generic[T]):
    """An operation in progress."""

    def __init__(self, operation: Operation[T]) -> None:
        self._operation = operation
        self.result: T

    def advance(self, reply: Any = None) -> Step | None:
        """Return the step after a reply, which may be an error of the transport; None at the result."""
        try:
            if isinstance(reply, httpx.RequestError):
                return self._operation.throw(reply)
            return self._operation.send(reply)
        except StopIteration as end:
            self.result = end.value
            return None

    def close(self) -> None:
        """Let the operation clean up, wherever it is."""
        self._operation.close()


def run_steps(http: httpx.Client, run: OperationRun[T]) -> Generator[Any]:
    """Run an operation to its result; yield the values that it emits."""
    with closing(run), closing(_Transport(http)) as transport:
        step = run.advance()
        while step is not None:
            if isinstance(step, Emit):
                yield step.value
                step = run.advance()
            else:
                step = run.advance(transport.perform(step))


async def run_steps_async(http: httpx.AsyncClient, run: OperationRun[T]) -> AsyncGenerator[Any]:
    """Run an operation to its result; yield the values that it emits."""
    with closing(run):
        async with aclosing(_AsyncTransport(http)) as transport:
            step = run.advance()
            while step is not None:
                if isinstance(step, Emit):
                    yield step.value
                    step = run.advance()
                else:
                    step = run.advance(await transport.perform(step))


class _Transport:
    """Performs steps with a blocking client; errors of the transport are replies."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._response: httpx.Response | None = None
        self._chunks: Iterator[bytes] = iter(())

    def perform(self, step: Step) -> Any:
        """Perform a step and return the reply."""
        try:
            match step:
                case SendRequest():
                    return self._send(step)
                case OpenStream():
                    return self._open(step)
                case ReadChunk():
                    return next(self._chunks, None)
                case Sleep():
                    return time.sleep(step.seconds)
                case RunBlocking():
                    return step.function()
        except httpx.RequestError as error:
            return error

    def _send(self, step: SendRequest) -> httpx.Response:
        response = self._open(step)
        if step.sink is None or not response.is_success:
            response.read()
            return response
        step.sink.seek(0)
        step.sink.truncate()
        for chunk in self._chunks:
            step.sink.write(chunk)
        return response

    def _open(self, step: SendRequest | OpenStream) -> httpx.Response:
        self.close()
        self._response = self._http.send(_build_request(self._http, step), stream=True)
        self._chunks = self._response.iter_bytes()
        return self._response

    def close(self) -> None:
        """Close the open response."""
        if self._response is not None:
            self._response.close()
            self._response = None


class _AsyncTransport:
    """Performs steps with an async client; errors of the transport are replies."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self._response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes]

    async def perform(self, step: Step) -> Any:
        """Perform a step and return the reply."""
        try:
            match step:
                case SendRequest():
                    return await self._send(step)
                case OpenStream():
                    return await self._open(step)
                case ReadChunk():
                    return await anext(self._chunks, None)
                case Sleep():
                    return await asyncio.sleep(step.seconds)
                case RunBlocking():
                    return await asyncio.to_thread(step.function)
        except httpx.RequestError as error:
            return error

    async def _send(self, step: SendRequest) -> httpx.Response:
        response = await self._open(step)
        if step.sink is None or not response.is_success:
            await response.aread()
            return response
        step.sink.seek(0)
        step.sink.truncate()
        async for chunk in self._chunks:
            await asyncio.to_thread(step.sink.write, chunk)
        return response

    async def _open(self, step: SendRequest | OpenStream) -> httpx.Response:
        await self.aclose()
        self._response = await self._http.send(_build_request(self._http, step), stream=True)
        self._chunks = self._response.aiter_bytes()
        return self._response

    async def aclose(self) -> None:
        """Close the open response."""
        if self._response is not None:
            await self._response.aclose()
            self._response = None


def _build_request(http: httpx.Client | httpx.AsyncClient, step: SendRequest | OpenStream) -> httpx.Request:
    request = step.request
    return http.build_request(
        request.method,
        request.path,
        params=dict(request.params) or None,
        headers=dict(request.headers),
        content=request.content,
        timeout=httpx.Timeout(step.timeout, connect=min(step.timeout, _CONNECT_TIMEOUT)),
    )
