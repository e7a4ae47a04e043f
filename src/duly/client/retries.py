"""Sending requests: which are retried, when, and for how long."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from duly.client.problems import InvalidResponse, error_of, invalid_response, unreachable
from duly.client.transport import Operation, RequestSpec, SendRequest, Sleep
from duly.core.errors import ConfigurationError, DulyError
from duly.core.outcome import parse_retry_after

M = TypeVar("M", bound=BaseModel)
_TRANSIENT = frozenset({429, 502, 503, 504})
_FIRST_BACKOFF, _MAX_BACKOFF = 0.5, 10.0
_MAX_RETRY_AFTER = 60.0
_MIN_TIMEOUT = 0.01


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """The seconds that an attempt may be silent, the number of retries, and the seconds for all of them."""

    timeout: float
    retries: float
    deadline: float

    def __post_init__(self) -> None:
        for name in ("timeout", "retries", "deadline"):
            value = getattr(self, name)
            if not value >= 0 or (value == 0 and name != "retries"):
                raise ConfigurationError(
                    f"must be positive, got {value!r}", field=name, fix="use a positive number"
                )


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt without a response, or with an error."""

    error: DulyError
    transient: bool = False
    """Whether another attempt may succeed."""
    retry_after: float = 0.0

    def backoff(self, attempt: int) -> float:
        """Return full jitter, on top of the time that the service asked for."""
        return self.retry_after + random.uniform(0, min(_FIRST_BACKOFF * 2**attempt, _MAX_BACKOFF))  # noqa: S311 - no secret


def send(
    request: RequestSpec, policy: RequestPolicy, sink: BinaryIO | None = None
) -> Operation[httpx.Response]:
    """Send a request, with retries; raise the error of the last attempt."""
    end = time.monotonic() + policy.deadline
    attempt = 0
    while True:
        left = max(end - time.monotonic(), _MIN_TIMEOUT)
        outcome = yield from send_once(request, min(policy.timeout, left), sink)
        if isinstance(outcome, httpx.Response):
            return outcome
        backoff = outcome.backoff(min(attempt, 10))
        late = time.monotonic() + backoff >= end
        if late or not request.idempotent or not outcome.transient or attempt >= policy.retries:
            raise outcome.error
        yield Sleep(backoff)
        attempt += 1


def send_once(
    request: RequestSpec, timeout: float, sink: BinaryIO | None = None
) -> Operation[httpx.Response | FailedAttempt]:
    """Send a request once."""
    try:
        response: httpx.Response = yield SendRequest(request, timeout + request.extra_timeout, sink)
    except (httpx.LocalProtocolError, httpx.UnsupportedProtocol) as error:
        return FailedAttempt(unreachable(error))
    except httpx.TransportError as error:
        return FailedAttempt(unreachable(error), transient=True)
    except httpx.RequestError as error:
        return FailedAttempt(
            InvalidResponse(f"{type(error).__name__}: {error}", fix="check the proxies before the service")
        )
    if response.is_success or response.status_code == 304:
        return response
    header = response.headers.get("retry-after", "")
    retry_after = parse_retry_after(header, datetime.now(UTC), _MAX_RETRY_AFTER)
    return FailedAttempt(error_of(response), response.status_code in _TRANSIENT, retry_after or 0.0)


def parse(kind: type[M], response: httpx.Response) -> M:
    """Parse the body of a response."""
    try:
        return kind.model_validate_json(response.content)
    except ValidationError:
        raise invalid_response(response, kind.__name__) from None
