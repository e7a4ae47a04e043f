"""Explain the status of a job in plain sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial

from duly.core.job import JobSnapshot
from duly.core.states import HELD, Outcome
from duly.features.job_detail.store import MAX_JOBS_AHEAD, JobConditions
from duly.features.limits.models import Limit
from duly.i18n import Messages, messages

Say = Callable[..., str]


def _message(catalogue: Messages, key: str, /, **values: object) -> str:
    return catalogue.text(f"explain.{key}", **values)


def explain(
    job: JobSnapshot, conditions: JobConditions, *, for_tenant: bool = False, language: str = "en"
) -> tuple[str, ...]:
    """Explain how a job ended, or what it waits for; the first sentence is the most important one.

    With `for_tenant`, workers and operators of the installation are not named.
    """
    say = partial(_message, messages(language[:2]))
    if for_tenant:
        conditions = _without_names(conditions, say)
    if job.status.terminal:
        return (_ended(job, say), *_pending_callback(conditions, say))
    if job.status in HELD:
        return tuple(_held(job, conditions, say))
    if job.run_at > conditions.now:
        return (_delayed(job, say),)
    return tuple(_queued(job, conditions, say))


def _without_names(conditions: JobConditions, say: Say) -> JobConditions:
    worker = conditions.worker and conditions.worker.model_copy(update={"name": say("worker_unnamed")})
    unnamed = {"paused_by": None, "pause_reason": None}
    gates = [gate if gate.org_id else gate.model_copy(update=unnamed) for gate in conditions.gates]
    queue = conditions.queue.model_copy(update=unnamed)
    return conditions.model_copy(update={"worker": worker, "queue": queue, "gates": gates})


def _pending_callback(conditions: JobConditions, say: Say) -> Iterator[str]:
    callback = conditions.callback
    if callback is not None:
        key = "callback_failing" if callback.tries else "callback_pending"
        yield say(key, n=callback.tries, error=callback.last_error, at=_time(callback.due_at))


def _ended(job: JobSnapshot, say: Say) -> str:
    reconciled = job.outcome is Outcome.FAILED and job.reconciled
    return say(
        "reconciled" if reconciled else job.outcome.value,
        at=_time(job.finished_at),
        error=_error(job),
        n=len(job.failure_summary) if job.outcome is Outcome.PARTIALLY_SUCCEEDED else job.attempt,
        by=say(f"by_{job.canceled_by or 'system'}"),
        reason=job.cancel_reason,
    )


def _held(job: JobSnapshot, conditions: JobConditions, say: Say) -> Iterator[str]:
    worker = conditions.worker
    name = say("worker_unknown") if worker is None else worker.name
    yield say("running", attempt=job.attempt, max=job.max_attempts, worker=name)
    if not conditions.claimed:
        yield say("unclaimed")
    elif worker is None or worker.lost:
        yield say("worker_lost")
    elif worker.silent:
        yield say("worker_silent", at=_time(worker.heartbeat_at))
    if job.cancel_requested_at is not None:
        yield say("cancel_requested", at=_time(job.cancel_requested_at), reason=job.cancel_reason)


def _delayed(job: JobSnapshot, say: Say) -> str:
    if job.error_code is None:
        return say("delayed", at=_time(job.run_at))
    return say("backoff", at=_time(job.run_at), spent=job.attempt, max=job.max_attempts, error=_error(job))


def _queued(job: JobSnapshot, conditions: JobConditions, say: Say) -> Iterator[str]:
    if not conditions.queued:
        yield say("unqueued")
        return
    obstacles = [
        *_pauses(conditions, say),
        *(text for gate in conditions.gates for text in _used_up(gate, say)),
    ]
    if not conditions.claimers:
        obstacles.append(say("no_worker", queue=job.queue))
    yield from obstacles
    ahead = conditions.jobs_ahead
    if ahead:
        yield say("ahead_at_least" if ahead >= MAX_JOBS_AHEAD else "ahead", n=ahead)
    elif not obstacles:
        yield say("next")


def _pauses(conditions: JobConditions, say: Say) -> Iterator[str]:
    queue = conditions.queue
    if queue.paused_at is not None:
        target = say("scope_queue", queue=queue.queue)
        yield _pause(target, queue.paused_at, queue.paused_by, queue.pause_reason, say)
    for gate in conditions.gates:
        if gate.paused_at is not None:
            yield _pause(_scope(gate, say), gate.paused_at, gate.paused_by, gate.pause_reason, say)


def _used_up(gate: Limit, say: Say) -> Iterator[str]:
    scope = _scope(gate, say)
    if gate.max_running is not None and gate.running >= gate.max_running:
        # Every viewer of the job reads these sentences: they must not tell how many jobs other orgs run.
        key = "concurrency_limit" if gate.org_id else "concurrency_limit_all_orgs"
        yield say(key, scope=scope, running=gate.running, max=gate.max_running)
    if gate.available is not None and gate.available < 1:
        yield say("rate_limit", scope=scope, rate=f"{gate.starts_per_second:g}")


def _pause(target: str, at: datetime, by: str | None, reason: str | None, say: Say) -> str:
    key = "paused_by" if by else "paused"
    return say(key, target=target, at=_time(at), by=by, reason=reason or say("no_reason"))


def _scope(gate: Limit, say: Say) -> str:
    if gate.job_type is None:
        return say("scope_org")
    return say("scope_type" if gate.org_id else "scope_type_all_orgs", job_type=gate.job_type)


def _error(job: JobSnapshot) -> str:
    return f"{job.error_code}: {job.error_message}"


def _time(at: datetime | None) -> str:
    return "?" if at is None else f"{at:%Y-%m-%d %H:%M:%S %Z}"
