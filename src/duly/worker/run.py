"""One attempt, as the worker that runs it knows it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from duly.client.job import Job
from duly.model.decide import Hold
from duly.model.error_report import describe
from duly.model.outcome import Canceled, Ending, ErrorInfo
from duly.model.policy import JobPolicy, stored_policy
from duly.model.states import Status
from duly.store.claims import ClaimedJob

if TYPE_CHECKING:
    from duly.observe.traces import Opened
    from duly.worker.job_log import JobLog
    from duly.worker.transaction import Bound

_MOST_FAILURES = 100


@dataclass(slots=True, eq=False)
class Run:
    """An attempt from its claim to its end. Handlers see it through their context."""

    job: ClaimedJob
    kind: Job[..., Any]
    policy: JobPolicy
    worker_id: UUID
    deadline: float = float("inf")
    """By the monotonic clock; set when the handler starts."""
    started_at: float | None = None
    """When the handler started, by the same clock."""
    task: asyncio.Task[None] | None = None
    forced: Ending | None = None
    """How it ends although the handler has not ended: a time-out, a cancel, a drain."""
    forced_at: float = 0.0
    cancel: Canceled | None = None
    cancel_at: float = 0.0
    lost: bool = False
    closed: bool = False
    """Nothing it still does counts."""
    abandoned: bool = False
    """Its handler goes on all the same."""
    draining: bool = False
    percent: float = 0.0
    partials: int = 0
    checkpoint: Any = None
    chunk_keys: set[str] = field(default_factory=set)
    """The chunks it was to do so far."""
    counts: dict[str, float] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)
    first_failure: ErrorInfo | None = None
    chunks_offered: int = 0
    chunks_entered: int = 0
    bound: Bound | None = None
    """The transaction that commits with the completion."""
    log: JobLog | None = None
    """Made when the handler asks for it."""
    span: Opened | None = None
    """Its span, if there are traces."""

    @classmethod
    def of(cls, job: ClaimedJob, kind: Job[..., Any], worker_id: UUID) -> Run:
        """A run of a claimed job."""
        return cls(job, kind, stored_policy(job.policy), worker_id, percent=job.progress_percent)

    def start_clock(self) -> None:
        """The handler starts now."""
        self.started_at = time.monotonic()
        self.deadline = self.started_at + self.policy.timeout.total_seconds()

    def stop_clock(self) -> None:
        """The handler waits for its turn."""
        self.deadline = float("inf")

    @property
    def seconds(self) -> float | None:
        """How long the handler has run by now; None if it has not started."""
        return None if self.started_at is None else time.monotonic() - self.started_at

    def ask_to_stop(self, request: Canceled) -> None:
        """Somebody wants it canceled."""
        if self.cancel is None:
            self.cancel, self.cancel_at = request, time.monotonic()

    def overdue(self, now: float, grace: timedelta) -> bool:
        """Whether a cancel was asked for, and not obeyed in time."""
        return self.cancel is not None and now > self.cancel_at + grace.total_seconds()

    def note_failure(self, chunk_key: str, error: Exception) -> None:
        """One chunk failed, and the job goes on."""
        if len(self.failures) < _MOST_FAILURES:
            said = describe(error, job_type=self.job.job_type)
            self.first_failure = self.first_failure or said
            self.failures.append(
                {
                    "chunk": chunk_key,
                    "error_code": said.code,
                    "error_class": said.error_class,
                    "error_message": said.message,
                }
            )

    @property
    def is_plain(self) -> bool:
        """Whether it leaves nothing behind but its result."""
        return not (self.counts or self.failures or self.chunks_offered)

    @property
    def hold(self) -> Hold:
        """The job as we hold it, for the decision."""
        status = Status.PARTIAL if self.partials else Status.RUNNING
        return Hold(status, self.job.attempt, self.job.returned, self.cancel)
