"""The span of an attempt: below what enqueued its job, and above whatever its handler does."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from duly.model.decide import decide
from duly.model.outcome import Done, Ending
from duly.model.states import Outcome
from duly.observe.fields import ids_of
from duly.worker.run import Run

if TYPE_CHECKING:
    from duly.observe.traces import Traces

log = logging.getLogger("duly.worker")


def begin(run: Run, traces: Traces) -> None:
    """For the rest of the running task, which is the attempt's own."""
    try:
        _begin(run, traces)
    except Exception:  # somebody's processor of spans: no job depends on it
        log.exception("job %s has no span", run.job.job_id, extra=ids_of(run.job))


def end(run: Run, ending: Ending | None) -> None:
    """As it will be settled; without an ending its own transaction has completed it."""
    try:
        _end(run, ending)
    except Exception:
        log.exception("the span of job %s is lost", run.job.job_id, extra=ids_of(run.job))


def _begin(run: Run, traces: Traces) -> None:
    job = run.job
    said: dict[str, str | int] = {
        "duly.job_id": str(job.job_id),
        "duly.job_type": job.job_type,
        "duly.attempt": run.hold.spent,
        "duly.org_id": str(job.org_id),
        "duly.queue": job.queue,
        "messaging.destination.name": job.queue,
        "messaging.message.id": str(job.job_id),
    }
    run.span = traces.attempt(f"attempt {job.job_type}", said, job.traceparent)


def _end(run: Run, ending: Ending | None) -> None:
    assert run.span is not None
    done = ending or Done(partially=bool(run.failures))
    to = decide(run.hold, done, run.policy.retry, datetime.now(UTC), 0)
    again = to.outcome is Outcome.PENDING
    run.span.tell({"duly.outcome": to.events[0].removeprefix("job.") if again else to.outcome})
    if to.error is not None:
        run.span.fail(to.error.code)
    run.span.end()
