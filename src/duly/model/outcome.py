"""How one attempt ended, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from duly.model.reconciliation import ReconciliationRecord

CanceledBy = Literal["user", "system", "worker"]


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """An error as it is stored and shown: already sanitised."""

    code: str
    message: str
    error_class: str = ""
    context: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """The whole error for whoever repairs it: `error_report.describe` makes it."""


@dataclass(frozen=True, slots=True)
class Done:
    """The handler finished; `result` is JSON-ready, or lies in the blob store under `result_ref`."""

    result: Any = None
    result_ref: str | None = None
    partially: bool = False
    summary_counts: dict[str, float] = field(default_factory=dict)
    failure_summary: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Retry:
    """An error that may pass; `after` is a floor set by the provider."""

    error: ErrorInfo
    after: timedelta | None = None
    dependency: str | None = None
    """On whose account the retry goes; the job type's own if nobody says."""


@dataclass(frozen=True, slots=True)
class Failed:
    """An error that will not pass; `blocked` when a precondition refused the work."""

    error: ErrorInfo
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class Snooze:
    """Not now: come back later without spending the attempt."""

    delay: timedelta
    reason: str = "snoozed"


@dataclass(frozen=True, slots=True)
class Canceled:
    """The worker saw the cancel request and stopped."""

    by: CanceledBy
    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The lease ran out: nobody knows how far the attempt came."""

    reason: str = "the worker stopped sending heartbeats"
    record: ReconciliationRecord | None = field(default=None, hash=False)
    """What was found, when somebody else says so."""


@dataclass(frozen=True, slots=True)
class Overruled:
    """Somebody other than its worker ends the job, for a reason that is on record."""

    record: ReconciliationRecord = field(hash=False)


Ending = Done | Retry | Failed | Snooze | Canceled | Lost | Overruled
