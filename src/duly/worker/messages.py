"""What a worker and its isolated processes say to each other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from duly.client.ground import Ground
from duly.model.outcome import Canceled, Ending
from duly.observe.logs import Logs
from duly.store.claims import ClaimedJob
from duly.store.job_logs import Line

OpenGround = Callable[[], Awaitable[Ground]]
"""Opens the database and the blobs; can be sent to another process."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What an isolated process must know before its first job."""

    open_ground: OpenGround
    url: str
    result_max: int
    job_log_level: int
    logs: Logs | None = None
    """How it writes its lines; None if its own modules say so."""
    modules: tuple[str, ...] = ()
    """Where its handlers are, to be imported before the first job comes."""


@dataclass(frozen=True, slots=True)
class Begin:
    """Run this job, whose handler is found under this name."""

    job: ClaimedJob
    module: str
    qualname: str
    worker_id: UUID
    memory_limit: int | None
    traceparent: str | None = None
    """The span of the attempt, below which the handler works."""


@dataclass(frozen=True, slots=True)
class Signal:
    """Something happened to the job that runs."""

    cancel: Canceled | None
    draining: bool
    lost: bool


@dataclass(frozen=True, slots=True)
class Ready:
    """The process is up and waits for a job."""


@dataclass(frozen=True, slots=True)
class Said:
    """Lines that the handler has logged, to be kept."""

    lines: tuple[Line, ...]
    last: bool


@dataclass(frozen=True, slots=True)
class Report:
    """How the attempt ended; the ending is None if its own transaction settled it."""

    ending: Ending | None
    partials: int
    percent: float
    counts: dict[str, float] = field(default_factory=dict)
    failures: tuple[dict[str, Any], ...] = ()
