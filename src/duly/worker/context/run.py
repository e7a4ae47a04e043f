"""The state of one running attempt, and its trace span."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
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
_NO_COUNTS: Mapping[str, float] = MappingProxyType({})


class JobRun:
    """One attempt from its claim to its end. Handlers see it through their context.

    Nearly all attempts change few of the fields: the others are attributes of the class, which cost nothing.
    """

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
    partials: int = 0
    checkpoint: Any = None
    chunk_keys: frozenset[str] = frozenset()
    """The keys of all chunks offered so far."""
    counts: Mapping[str, float] = _NO_COUNTS
    failures: tuple[dict[str, Any], ...] = ()
    first_failure: ErrorInfo | None = None
    chunks_offered: int = 0
    chunks_entered: int = 0
    bound: BoundTransaction | None = None
    """The transaction that commits with the completion."""
    log: JobLog | None = None
    """Created when the handler first uses `ctx.log`."""
    span: OpenSpan | None = None
    """The trace span, if tracing is on."""

    def __init__(self, job: ClaimedJob, kind: Job[..., Any], worker_id: UUID) -> None:
        self.job = job
        self.kind = kind
        self.policy: JobPolicy = parse_stored_policy(job.policy)
        self.worker_id = worker_id
        self.percent = job.progress_percent

    def start_clock(self) -> None:
        """Start the time-out: the handler starts now."""
        self.started_at = now = time.monotonic()
        self.deadline = now + self.policy.timeout_seconds

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
            failure = {
                "chunk": chunk_key,
                "error_code": info.code,
                "error_class": info.error_class,
                "error_message": info.message,
            }
            self.failures = (*self.failures, failure)

    @property
    def is_plain(self) -> bool:
        """Whether the attempt leaves nothing but its result."""
        return not (self.counts or self.failures or self.chunks_offered)

    @property
    def hold(self) -> JobState:
        """The state of the held job, as `decide` needs it."""
        job = self.job
        return _hold(job.attempt, job.returned, bool(self.partials), self.cancel)


@lru_cache(maxsize=256)
def _hold(attempt: int, returned: int, is_partial: bool, cancel: Canceled | None) -> JobState:
    """Return the state of a held job; cached, because nearly all are at their first attempt."""
    return JobState(Status.PARTIAL if is_partial else Status.RUNNING, attempt, returned, cancel)


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
