"""Steps: what a flow asks of whoever runs it. A flow is a generator of steps that returns its result."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Generic, TypeVar

import httpx

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, before it is known how often it is sent."""

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    again: bool = True
    """Whether sent twice it is done once."""
    quiet: float = 0.0
    """How many seconds more the answer may take, for it was asked to wait."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send it: the reply is the whole answer, or its head if the body goes to a sink."""

    asked: Asked
    timeout: float
    sink: BinaryIO | None = None


@dataclass(frozen=True, slots=True)
class Open:
    """Send it: the reply is the head of the answer; its body comes by `Next`."""

    asked: Asked
    timeout: float


@dataclass(frozen=True, slots=True)
class Next:
    """The next bytes of what was opened, or None at its end."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Work:
    """Do what blocks: files."""

    do: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Tell:
    """Hand this to the caller, and go on."""

    value: Any


Step = Send | Open | Next | Pause | Work | Tell
Flow = Generator[Step, Any, T]


class Course(Generic[T]):
    """A flow on its way."""

    def __init__(self, flow: Flow[T]) -> None:
        self._flow = flow
        self.result: T

    def on(self, reply: Any = None) -> Step | None:
        """The next step after this reply, which may be an error of the transport; None at the result."""
        try:
            if isinstance(reply, httpx.RequestError):
                return self._flow.throw(reply)
            return self._flow.send(reply)
        except StopIteration as end:
            self.result = end.value
            return None

    def close(self) -> None:
        """Let the flow clean up, wherever it stands."""
        self._flow.close()


def build(http: httpx.Client | httpx.AsyncClient, step: Send | Open) -> httpx.Request:
    """The request of httpx."""
    asked = step.asked
    return http.build_request(
        asked.method,
        asked.path,
        params=dict(asked.params) or None,
        headers=dict(asked.headers),
        content=asked.content,
        timeout=httpx.Timeout(step.timeout, connect=min(step.timeout, _CONNECT)),
    )


_CONNECT = 10.0
