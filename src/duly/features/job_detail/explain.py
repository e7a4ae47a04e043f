"""Why a job is where it is, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Protocol

from duly.core.job import JobSnapshot
from duly.core.states import HELD, Outcome
from duly.features.jobs.store import Surrounds
from duly.features.limits.models import Limit
from duly.i18n import Messages, messages

MOST_BEFORE = 1_000
"""Those that come before a job are counted no further than this."""


class Say(Protocol):
    """A sentence of one language by its key, with its gaps filled."""

    def __call__(self, key: str, /, **values: object) -> str:
        """Return the sentence."""


def _sentence(known: Messages, key: str, /, **values: object) -> str:
    return known.text(f"explain.{key}", **values)


def explain(
    job: JobSnapshot, around: Surrounds, *, outside: bool = False, language: str = "en"
) -> tuple[str, ...]:
    """What became of it, or what it waits for; the first sentence says the most.

    `outside` is for the org alone: who and what belongs to the installation is not named.
    """
    say = partial(_sentence, messages(language[:2]))
    if outside:
        around = _without_names(around, say)
    if job.status.terminal:
        return (_ended(job, say), *_owed(around, say))
    if job.status in HELD:
        return tuple(_held(job, around, say))
    if job.run_at > around.now:
        return (_delayed(job, say),)
    return tuple(_waiting(job, around, say))


def _without_names(around: Surrounds, say: Say) -> Surrounds:
    worker = around.worker and around.worker.model_copy(update={"name": say("worker_unnamed")})
    nobody = {"paused_by": None, "pause_reason": None}
    gates = [gate if gate.org_id else gate.model_copy(update=nobody) for gate in around.gates]
    queue = around.queue.model_copy(update=nobody)
    return around.model_copy(update={"worker": worker, "queue": queue, "gates": gates})


def _owed(around: Surrounds, say: Say) -> Iterator[str]:
    debt = around.debt
    if debt is not None:
        key = "callback_failing" if debt.tries else "callback_pending"
        yield say(key, n=debt.tries, error=debt.last_error, at=_time(debt.due_at))


def _ended(job: JobSnapshot, say: Say) -> str:
    values = {
        "at": _time(job.finished_at),
        "error": f"{job.error_code}: {job.error_message}",
        "n": len(job.failure_summary) if job.outcome is Outcome.PARTIALLY_SUCCEEDED else job.attempt,
        "by": say(f"by_{job.canceled_by or 'system'}"),
        "reason": job.cancel_reason,
    }
    reconciled = job.outcome is Outcome.FAILED and job.reconciled
    return say("reconciled" if reconciled else job.outcome.value, **values)


def _held(job: JobSnapshot, around: Surrounds, say: Say) -> Iterator[str]:
    worker = around.worker
    name = say("worker_unknown") if worker is None else worker.name
    yield say("running", attempt=job.attempt, max=job.max_attempts, worker=name)
    if not around.claimed:
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
    error = f"{job.error_code}: {job.error_message}"
    return say("backoff", at=_time(job.run_at), spent=job.attempt, max=job.max_attempts, error=error)


def _waiting(job: JobSnapshot, around: Surrounds, say: Say) -> Iterator[str]:
    if not around.queued:
        yield say("unqueued")
        return
    obstacles = [*_paused(around, say), *(said for gate in around.gates for said in _full(gate, say))]
    if not around.takers:
        obstacles.append(say("no_worker", queue=job.queue))
    yield from obstacles
    if around.before:
        yield say("ahead_at_least" if around.before >= MOST_BEFORE else "ahead", n=around.before)
    elif not obstacles:
        yield say("next")


def _paused(around: Surrounds, say: Say) -> Iterator[str]:
    queue = around.queue
    if queue.paused_at is not None:
        target = say("scope_queue", queue=queue.queue)
        yield _pause(target, queue.paused_at, queue.paused_by, queue.pause_reason, say)
    for gate in around.gates:
        if gate.paused_at is not None:
            yield _pause(_scope(gate, say), gate.paused_at, gate.paused_by, gate.pause_reason, say)


def _full(gate: Limit, say: Say) -> Iterator[str]:
    scope = _scope(gate, say)
    if gate.max_running is not None and gate.running >= gate.max_running:
        # How many other orgs have is not told: these sentences are for everybody who may see the job.
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


def _time(at: datetime | None) -> str:
    return "?" if at is None else f"{at:%Y-%m-%d %H:%M:%S %Z}"
