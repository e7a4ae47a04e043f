"""Why a job is where it is, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from duly.model.job import JobSnapshot
from duly.model.states import HELD, Outcome
from duly.store.gates import Limit
from duly.store.listing import Surrounds

MOST_BEFORE = 1_000
"""Those that come before a job are counted no further than this."""


def explain(job: JobSnapshot, around: Surrounds, *, outside: bool = False) -> tuple[str, ...]:
    """What became of it, or what it waits for; the first sentence says the most.

    `outside` is for the org alone: who and what belongs to the installation is not named.
    """
    if outside:
        around = _without_names(around)
    if job.status.terminal:
        return (_ended(job), *_owed(around))
    if job.status in HELD:
        return tuple(_held(job, around))
    if job.run_at > around.now:
        return (_delayed(job),)
    return tuple(_waiting(job, around))


def _without_names(around: Surrounds) -> Surrounds:
    worker = around.worker and around.worker.model_copy(update={"name": "a worker"})
    nobody = {"paused_by": None, "pause_reason": None}
    gates = [gate if gate.org_id else gate.model_copy(update=nobody) for gate in around.gates]
    queue = around.queue.model_copy(update=nobody)
    return around.model_copy(update={"worker": worker, "queue": queue, "gates": gates})


def _owed(around: Surrounds) -> Iterator[str]:
    if around.debt is not None:
        said = f", after {around.debt.tries} tries: {around.debt.last_error}" if around.debt.tries else ""
        yield f"Its failure callback is still owed{said}. It comes from {_time(around.debt.due_at)} on."


def _ended(job: JobSnapshot) -> str:
    at, said = _time(job.finished_at), f"{job.error_code}: {job.error_message}"
    match job.outcome:
        case Outcome.SUCCEEDED:
            return f"It completed at {at}."
        case Outcome.PARTIALLY_SUCCEEDED:
            return f"It completed at {at}; {len(job.failure_summary)} of its parts failed."
        case Outcome.DEAD:
            return f"It died at {at} after {job.attempt} attempts, and lies in the dead letters: {said}"
        case Outcome.BLOCKED:
            return f"It was refused at {at}, and is not tried again: {said}"
        case Outcome.CANCELED:
            return f"It was canceled at {at} by the {job.canceled_by}: {job.cancel_reason}"
        case _ if job.reconciled:
            return f"It was ended at {at} by the reconciler: {said}"
        case _:
            return f"It failed at {at}: {said}"


def _held(job: JobSnapshot, around: Surrounds) -> Iterator[str]:
    worker = around.worker
    name = "a worker that is no longer known" if worker is None else worker.name
    yield f"Attempt {job.attempt} of {job.max_attempts} runs on {name}."
    if not around.claimed:
        yield "Nobody holds it; the reconciler fails it when its attempt is older than its type allows."
    elif worker is None or worker.lost:
        yield "That worker is lost; the job will be taken over."
    elif worker.silent:
        yield f"That worker was last heard of at {_time(worker.heartbeat_at)}; it will be declared lost."
    if job.cancel_requested_at is not None:
        yield f"Its cancel was asked for at {_time(job.cancel_requested_at)}: {job.cancel_reason}"


def _delayed(job: JobSnapshot) -> str:
    if job.error_code is None:
        return f"It may run from {_time(job.run_at)} on."
    return (
        f"It is tried again at {_time(job.run_at)}, {job.attempt} of {job.max_attempts} attempts are spent; "
        f"the last one ended with {job.error_code}: {job.error_message}"
    )


def _waiting(job: JobSnapshot, around: Surrounds) -> Iterator[str]:
    if not around.queued:
        yield "No queue has it; the reconciler will fail it."
        return
    obstacles = [*_paused(around), *(said for gate in around.gates for said in _full(gate))]
    if not around.takers:
        obstacles.append(f"No living worker takes jobs from {job.queue}.")
    yield from obstacles
    if around.before:
        many = f"{around.before} or more" if around.before >= MOST_BEFORE else str(around.before)
        yield f"{many} jobs of its org come first."
    elif not obstacles:
        yield "It is the next of its org, and starts when a worker has a slot free."


def _paused(around: Surrounds) -> Iterator[str]:
    queue = around.queue
    if queue.paused_at is not None:
        yield _pause(f"The queue {queue.queue}", queue.paused_at, queue.paused_by, queue.pause_reason)
    for gate in around.gates:
        if gate.paused_at is not None:
            yield _pause(_whose(gate), gate.paused_at, gate.paused_by, gate.pause_reason)


def _full(gate: Limit) -> Iterator[str]:
    if gate.max_running is not None and gate.running >= gate.max_running:
        # How many other orgs have is not told: these sentences are for everybody who may see the job.
        many = f"{gate.running} jobs running, and may have {gate.max_running}"
        yield f"{_whose(gate)} has {many if gate.org_id else 'as many jobs running as it may have'}."
    if gate.available is not None and gate.available < 1:
        yield f"{_whose(gate)} may start {gate.starts_per_second:g} jobs a second, and has used that up."


def _pause(what: str, at: datetime, by: str | None, reason: str | None) -> str:
    who = f" by {by}" if by else ""
    return f"{what} is paused since {_time(at)}{who}: {reason or 'no reason given'}"


def _whose(gate: Limit) -> str:
    if gate.job_type is None:
        return "Its org"
    return f"{gate.job_type} in its org" if gate.org_id else f"{gate.job_type} in all orgs"


def _time(at: datetime | None) -> str:
    return "?" if at is None else f"{at:%Y-%m-%d %H:%M:%S %Z}"
