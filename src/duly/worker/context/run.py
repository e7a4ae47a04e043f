"""The state of one running attempt, and its trace span."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from duly.core.decide import JobState, decide
from duly.core.error_report import describe_error
from duly.core.outcome import AttemptOutcome, Canceled, Completed, ErrorInfo
from duly.core.policy import JobPolicy, parse_stored_policy
from duly.core.states import Outcome, Status
from duly.jobs.job import Job
from duly.observability.logs import ids_of
from duly.worker.claim import ClaimedJob

if TYPE_CHECKING:
    from duly.observability.traces import OpenSpan, Traces
    from duly.worker.context.transaction import BoundTransaction
    from duly.worker.job_log import JobLog

log = logging.getLogger("duly.worker")
_MAX_CHUNK_FAILURES = 100


@dataclass(slots=True, eq=False)
class JobRun:
    """One attempt from its claim to its end. Handlers see it through their context."""

    job: ClaimedJob
    kind: Job[..., Any]
    policy: JobPolicy
    worker_id: UUID
    deadline: float = float("inf")
    """By the monotonic clock; set when the handler starts."""
    started_at: float | None = None
    """When the handler started, by the same clock."""
    task: asyncio.Task[None] | None = None
    forced: AttemptOutcome | None = None
    """The ending that the worker imposes: a time-out, a cancel, a drain."""
    forced_at: float = 0.0
    cancel: Canceled | None = None
    cancel_at: float = 0.0
    lost: bool = False
    closed: bool = False
    """The ending is decided: later writes of the handler are refused."""
    abandoned: bool = False
    """The handler ignored its cancellation and still runs."""
    draining: bool = False
    percent: float = 0.0
    partials: int = 0
    checkpoint: Any = None
    chunk_keys: set[str] = field(default_factory=set)
    """The keys of all chunks offered so far."""
    counts: dict[str, float] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)
    first_failure: ErrorInfo | None = None
    chunks_offered: int = 0
    chunks_entered: int = 0
    bound: BoundTransaction | None = None
    """The transaction that commits with the completion."""
    log: JobLog | None = None
    """Created when the handler first uses `ctx.log`."""
    span: OpenSpan | None = None
    """The trace span, if tracing is on."""

    @classmethod
    def of(cls, job: ClaimedJob, kind: Job[..., Any], worker_id: UUID) -> JobRun:
        """Return the run of a claimed job."""
        return cls(job, kind, parse_stored_policy(job.policy), worker_id, percent=job.progress_percent)

    def start_clock(self) -> None:
        """Start the time-out: the handler starts now."""
        self.started_at = time.monotonic()
        self.deadline = self.started_at + self.policy.timeout.total_seconds()

    def stop_clock(self) -> None:
        """Suspend the time-out while the handler waits for a thread."""
        self.deadline = float("inf")

    @property
    def seconds(self) -> float | None:
        """How long the handler has run; None before it started."""
        return None if self.started_at is None else time.monotonic() - self.started_at

    def request_cancel(self, request: Canceled) -> None:
        """Record a cancel request; the first one counts."""
        if self.cancel is None:
            self.cancel, self.cancel_at = request, time.monotonic()

    def overdue(self, now: float, grace: timedelta) -> bool:
        """Whether the handler has ignored a cancel request for longer than `grace`."""
        return self.cancel is not None and now > self.cancel_at + grace.total_seconds()

    def add_failure(self, chunk_key: str, error: Exception) -> None:
        """Record the failure of one chunk; the job goes on."""
        if len(self.failures) < _MAX_CHUNK_FAILURES:
            info = describe_error(error, job_type=self.job.job_type)
            self.first_failure = self.first_failure or info
            self.failures.append(
                {
                    "chunk": chunk_key,
                    "error_code": info.code,
                    "error_class": info.error_class,
                    "error_message": info.message,
                }
            )

    @property
    def is_plain(self) -> bool:
        """Whether the attempt leaves nothing but its result."""
        return not (self.counts or self.failures or self.chunks_offered)

    @property
    def hold(self) -> JobState:
        """The state of the held job, as `decide` needs it."""
        status = Status.PARTIAL if self.partials else Status.RUNNING
        return JobState(status, self.job.attempt, self.job.returned, self.cancel)


def begin_span(run: JobRun, traces: Traces) -> None:
    """Open the span of an attempt for the rest of the current task, below the span that enqueued the job."""
    job = run.job
    attributes: dict[str, str | int] = {
        "duly.job_id": str(job.job_id),
        "duly.job_type": job.job_type,
        "duly.attempt": run.hold.spent,
        "duly.org_id": str(job.org_id),
        "duly.queue": job.queue,
        "messaging.destination.name": job.queue,
        "messaging.message.id": str(job.job_id),
    }
    try:
        run.span = traces.attempt(f"attempt {job.job_type}", attributes, job.traceparent)
    except Exception:  # a span processor of the application: no job depends on it
        log.exception("could not open the span of job %s", job.job_id, extra=ids_of(job))


def end_span(run: JobRun, ending: AttemptOutcome | None) -> None:
    """Close the span with the outcome; without an ending the attempt's own transaction has completed it."""
    assert run.span is not None
    try:
        done = ending or Completed(partially=bool(run.failures))
        to = decide(run.hold, done, run.policy.retry, datetime.now(UTC), 0)
        again = to.outcome is Outcome.PENDING
        run.span.update({"duly.outcome": to.events[0].removeprefix("job.") if again else to.outcome})
        if to.error is not None:
            run.span.fail(to.error.code)
        run.span.end()
    except Exception:
        log.exception("could not close the span of job %s", run.job.job_id, extra=ids_of(run.job))
