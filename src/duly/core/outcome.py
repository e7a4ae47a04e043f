"""The outcome of one attempt, and the signals by which a handler chooses it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar, Literal

from duly.core.errors import ContractError
from duly.core.reconciliation import ReconciliationRecord

CanceledBy = Literal["user", "system", "worker"]
MAX_RETRY_AFTER = 24 * 3600.0
_SECONDS = re.compile(r"\s*[0-9]+([.][0-9]+)?\s*")
# Each outcome has a `name`, which is stored in the log of its job: it stays when the class is renamed.


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """An error as it is stored and shown, already redacted."""

    code: str
    message: str
    error_class: str = ""
    context: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """The full report of the error, made by `error_report.describe_error`."""


@dataclass(frozen=True, slots=True)
class Completed:
    """The handler finished; `result` is plain JSON, or stored as the blob `result_ref`."""

    name: ClassVar[str] = "done"
    result: Any = None
    result_ref: str | None = None
    partially: bool = False
    summary_counts: dict[str, float] = field(default_factory=dict)
    failure_summary: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Retried:
    """A transient error; `after` is the least delay that a provider requests."""

    name: ClassVar[str] = "retry"
    error: ErrorInfo
    after: timedelta | None = None
    dependency: str | None = None
    """The dependency whose retry budget is spent; that of the job type by default."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A permanent error; `blocked` when a precondition refused the work."""

    name: ClassVar[str] = "failed"
    error: ErrorInfo
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The handler put the job off without spending the attempt."""

    name: ClassVar[str] = "snooze"
    delay: timedelta
    reason: str = "snoozed"


@dataclass(frozen=True, slots=True)
class Canceled:
    """The worker stopped the handler by a cancel request."""

    name: ClassVar[str] = "canceled"
    by: CanceledBy
    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The lease expired; how far the attempt came is unknown."""

    name: ClassVar[str] = "lost"
    reason: str = "the worker stopped sending heartbeats"
    record: ReconciliationRecord | None = field(default=None, hash=False)
    """The finding of the reconciler or the reaper that ended the attempt."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The reconciler ended the job, for the recorded reason."""

    name: ClassVar[str] = "overruled"
    record: ReconciliationRecord = field(hash=False)


DONE = Completed()
"""The outcome of a handler that returned nothing and left nothing else."""
AttemptOutcome = Completed | Retried | Failed | Snoozed | Canceled | Lost | Reconciled


class HandlerSignal(Exception):
    """Ends the running attempt: return it from a handler, or raise it anywhere inside."""


class Retry(HandlerSignal):
    """Retry the job later; `after` is the least delay, such as a provider's Retry-After."""

    def __init__(
        self,
        reason: str = "retry requested by the handler",
        *,
        after: timedelta | float | None = None,
        code: str = "handler.retry",
        dependency: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.after = None if after is None else _duration("after", after)
        self.code = code
        self.dependency = dependency


class Snooze(HandlerSignal):
    """Run the job again after the delay, without spending the attempt."""

    def __init__(self, delay: timedelta | float, reason: str = "snoozed by the handler") -> None:
        super().__init__(reason)
        self.delay = _duration("delay", delay)
        self.reason = reason


class Cancel(HandlerSignal):
    """Cancel the job from within."""

    def __init__(self, reason: str = "canceled by the handler") -> None:
        super().__init__(reason)
        self.reason = reason


class Fail(HandlerSignal):
    """Fail the job without further attempts; `blocked` when a precondition refused the work."""

    def __init__(self, reason: str, *, code: str = "handler.failed", blocked: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.blocked = blocked


def _duration(field: str, value: timedelta | float) -> timedelta:
    try:
        duration = value if isinstance(value, timedelta) else timedelta(seconds=value)
    except (TypeError, ValueError, OverflowError):
        raise ContractError(
            f"{value!r} is not a duration", field=field, fix="pass seconds or a timedelta"
        ) from None
    if duration < timedelta(0):
        raise ContractError(f"must not be negative, got {value!r}", field=field, fix="pass zero or more")
    return duration


def parse_retry_after(header: str, now: datetime, maximum: float = MAX_RETRY_AFTER) -> float | None:
    """Return the seconds of a Retry-After header, which may also be a date; None if it is neither."""
    try:
        seconds = float(header) if _SECONDS.fullmatch(header) else _seconds_until(header, now)
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), maximum)


def _seconds_until(date: str, now: datetime) -> float:
    at = parsedate_to_datetime(date)
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC) - now).total_seconds()
