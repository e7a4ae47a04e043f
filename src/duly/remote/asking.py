"""Asking: what is asked again, when, and for how long."""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import BinaryIO, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from duly.model.errors import ConfigurationError, DulyError
from duly.remote.problems import BadAnswer, bad_answer, error_of, unreachable
from duly.remote.steps import Asked, Flow, Pause, Send

M = TypeVar("M", bound=BaseModel)
_PASSING = frozenset({429, 502, 503, 504})
_FIRST, _LONGEST = 0.5, 10.0
_LONGEST_ASKED = 60.0
_SHORTEST = 0.01


@dataclass(frozen=True, slots=True)
class Patience:
    """How many seconds an attempt may be quiet, how many may follow it, and how many seconds all may take."""

    timeout: float
    retries: float
    deadline: float

    def __post_init__(self) -> None:
        for name in ("timeout", "retries", "deadline"):
            value = getattr(self, name)
            if not value >= 0 or (value == 0 and name != "retries"):
                raise ConfigurationError(
                    f"{value!r} is out of range", field=name, fix="use a positive number"
                )


@dataclass(frozen=True, slots=True)
class Refusal:
    """An attempt that brought no answer, or one that says no."""

    error: DulyError
    passing: bool = False
    """Whether another attempt may do better."""
    retry_after: float = 0.0

    def pause(self, attempt: int) -> float:
        """Full jitter, after what the service asked for, if that is no absurd time."""
        return self.retry_after + random.uniform(0, min(_FIRST * 2**attempt, _LONGEST))  # noqa: S311 - no secret


def answered(asked: Asked, patience: Patience, sink: BinaryIO | None = None) -> Flow[httpx.Response]:
    """The answer, if need be after some attempts; what remains wrong is raised."""
    end = time.monotonic() + patience.deadline
    attempt = 0
    while True:
        left = max(end - time.monotonic(), _SHORTEST)
        got = yield from once(asked, min(patience.timeout, left), sink)
        if isinstance(got, httpx.Response):
            return got
        pause = got.pause(min(attempt, 10))
        late = time.monotonic() + pause >= end
        if late or not asked.again or not got.passing or attempt >= patience.retries:
            raise got.error
        yield Pause(pause)
        attempt += 1


def once(asked: Asked, timeout: float, sink: BinaryIO | None = None) -> Flow[httpx.Response | Refusal]:
    """One attempt."""
    try:
        answer: httpx.Response = yield Send(asked, timeout + asked.quiet, sink)
    except (httpx.LocalProtocolError, httpx.UnsupportedProtocol) as error:
        return Refusal(unreachable(error))
    except httpx.TransportError as error:
        return Refusal(unreachable(error), passing=True)
    except httpx.RequestError as error:
        return Refusal(
            BadAnswer(f"{type(error).__name__}: {error}", fix="see what stands before the service")
        )
    if answer.is_success or answer.status_code == 304:
        return answer
    return Refusal(error_of(answer), answer.status_code in _PASSING, _retry_after(answer))


def read(kind: type[M], answer: httpx.Response) -> M:
    """The body as what it should be."""
    try:
        return kind.model_validate_json(answer.content)
    except ValidationError:
        raise bad_answer(answer, kind.__name__) from None


def _retry_after(answer: httpx.Response) -> float:
    """The seconds of the header, which may also be a date; never more than a minute."""
    said = answer.headers.get("retry-after", "")
    try:
        seconds = float(said) if said[:1].isdigit() else _until(said)
    except (ValueError, TypeError):
        return 0.0
    return min(max(seconds, 0.0), _LONGEST_ASKED) if math.isfinite(seconds) else 0.0


def _until(date: str) -> float:
    at = parsedate_to_datetime(date)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - datetime.now(UTC).timestamp()
