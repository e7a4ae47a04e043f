"""The plain path of one claim: what its statements read, when they lock the claim, what they write.

A transaction starts, waits for the lock of the claim, reads what it decides by, and writes when it commits.
Between any two of these, everything else may happen. The rows are those of the tables; `rows` has a job as a
whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from tests.protocol.explore import Move


@dataclass(frozen=True, slots=True)
class PlainRules:
    """The rules of the plain path. Each can be switched off, to verify that the checker reports it."""

    completion_locks: bool = True
    """A completion locks the claim."""
    completion_rereads: bool = True
    """It reads the claim as it is when it has the lock, not by its snapshot."""
    checks_left_jobs: bool = True
    """It leaves out the jobs that left the plain path."""
    end_needs_claim: bool = True
    """It writes nothing if the claim is gone."""
    leaving_locks: bool = True
    """A job leaves under the lock of its claim."""
    leaving_rereads: bool = True
    """What decides whether it leaves is read by a statement of its own, after the lock."""
    logs_started: bool = True
    """A job that leaves gets its started event."""


class Kind(Enum):
    """What a transaction does."""

    COMPLETE = "complete the jobs of the claim"
    CANCEL = "request a cancel of the first job"
    PROGRESS = "store the progress of the first job"
    REAP = "take over the claim of the lost worker"


class Phase(Enum):
    """How far a transaction is."""

    READY = 0
    WAITING = 1
    """It has its snapshot, and waits for the lock."""
    LOCKED = 2
    DECIDED = 3
    """It has read what it needs."""
    OVER = 4


class Job(NamedTuple):
    """What the tables contain about a job."""

    state: str = ""
    """The status of its row of states, if it has one."""
    attempt: int = 1
    cancel: bool = False
    event_seq: int = 1
    logged: tuple[int, ...] = (1,)
    """Its events with a row of their own."""
    ended: bool = False
    """It has a row of ends, which is also the events 2 and 3."""
    left: bool = False
    """Its claim, if it exists, lists it as one that left the plain path."""

    def to(self, state: str, *, events: int = 1, logs: bool = True) -> Job:
        """Return the job in this state, with this many further events."""
        last = self.event_seq + events
        logged = (*self.logged, *range(self.event_seq + 1, last + 1)) if logs else self.logged
        return self._replace(state=state, event_seq=last, logged=logged)


class View(NamedTuple):
    """What a statement sees."""

    claim: bool
    jobs: tuple[Job, ...]


class Transaction(NamedTuple):
    """A transaction that writes for jobs of the claim."""

    kind: Kind
    phase: Phase = Phase.READY
    snapshot: View | None = None
    view: View | None = None


class Claim(NamedTuple):
    """The claim, its jobs, and all transactions."""

    jobs: tuple[Job, ...]
    transactions: tuple[Transaction, ...]
    exists: bool = True
    lost: bool = False
    """Its worker was declared lost, and may go on without knowing it."""
    lock: int | None = None
    returned: frozenset[int] = frozenset()
    """The jobs that a completion returned, still to be completed in their state."""

    @property
    def now(self) -> View:
        """What a statement sees that starts now."""
        return View(self.exists, self.jobs)


FIRST = Claim((Job(), Job()), tuple(map(Transaction, [Kind.COMPLETE, *Kind])))
"""Two jobs; the completion may be sent twice, because its answer may be lost."""

ONE_END = "a job ends once"
NO_STATE_AND_END = "a job that ended on the plain path has no state"
NO_GAPS = "event_seq has no gaps, and no number twice"


def broken(claim: Claim) -> str | None:
    """Return the first invariant that does not hold."""
    for job in claim.jobs:
        if job.ended and job.state in ("completed", "canceled"):
            return ONE_END
        if job.ended and job.state:
            return NO_STATE_AND_END
        numbers = sorted((*job.logged, *((2, 3) if job.ended else ())))
        if numbers != list(range(1, 1 + len(numbers))):
            return NO_GAPS
    return None


def all_ended(claim: Claim) -> bool:
    """Whether every job has ended."""
    return all(job.ended or job.state in ("completed", "canceled") for job in claim.jobs)


def moves(rules: PlainRules) -> Callable[[Claim], Iterator[Move[Claim]]]:
    """Yield the moves of a state, each with its verdict."""

    def of(claim: Claim) -> Iterator[Move[Claim]]:
        for label, after, fair in _steps(claim, rules):
            yield Move(label, after, broken(after), fair)

    return of


def _steps(claim: Claim, rules: PlainRules) -> Iterator[tuple[str, Claim, bool]]:
    if claim.exists and not claim.lost:
        yield "the worker is declared lost", claim._replace(lost=True), False
    for number, transaction in enumerate(claim.transactions):
        yield from _step(claim, number, transaction, rules)
    for number in sorted(claim.returned):
        yield f"the worker completes job {number} in its state", _complete_in_state(claim, number), True
    for number, job in enumerate(claim.jobs):
        if job.state == "queued":
            again = job._replace(attempt=2).to("running")
            yield f"another worker claims job {number}", _with_job(claim, number, again), True
        elif job.state == "running" and job.attempt == 2:
            done = _with_job(claim, number, job.to("completed"))
            yield f"the other worker completes job {number}", done, True


def _step(
    claim: Claim, number: int, transaction: Transaction, rules: PlainRules
) -> Iterator[tuple[str, Claim, bool]]:
    kind, phase = transaction.kind, transaction.phase
    completes = kind is Kind.COMPLETE
    rereads = rules.completion_rereads if completes else rules.leaving_rereads
    fair = completes or kind is Kind.REAP or phase is not Phase.READY
    name = f"{number}: {kind.value}"

    def at(claim: Claim, **changes: object) -> Claim:
        changed = claim.transactions[number]._replace(**changes)  # type: ignore[arg-type]
        return claim._replace(
            transactions=(*claim.transactions[:number], changed, *claim.transactions[number + 1 :])
        )

    if phase is Phase.READY:
        if kind is not Kind.REAP or claim.lost:
            # A snapshot that nothing is read by would only multiply the states.
            snapshot = None if rereads else claim.now
            yield f"{name}: start", at(claim, phase=Phase.WAITING, snapshot=snapshot), fair
    elif phase is Phase.WAITING:
        if not (rules.completion_locks if completes else rules.leaving_locks):
            yield f"{name}: go on without the lock", at(claim, phase=Phase.LOCKED), fair
        elif claim.lock is None:
            yield f"{name}: lock", at(claim._replace(lock=number), phase=Phase.LOCKED), fair
    elif phase is Phase.LOCKED:
        view = claim.now if rereads else transaction.snapshot
        yield f"{name}: read", at(claim, phase=Phase.DECIDED, view=view, snapshot=None), fair
    elif phase is Phase.DECIDED and transaction.view is not None:
        unlocked = claim._replace(lock=None) if claim.lock == number else claim
        after = _WRITES[kind](unlocked, transaction.view, rules)
        yield f"{name}: commit", at(after, phase=Phase.OVER, view=None), fair


def _complete(claim: Claim, view: View, rules: PlainRules) -> Claim:
    other = set()
    for number, job in enumerate(view.jobs):
        left = view.claim and job.left and rules.checks_left_jobs
        if (view.claim or not rules.end_needs_claim) and not left and not claim.jobs[number].ended:
            claim = _with_job(claim, number, claim.jobs[number]._replace(ended=True))
        else:
            other.add(number)
    return claim._replace(returned=claim.returned | other) if other else claim._replace(exists=False)


def _complete_in_state(claim: Claim, number: int) -> Claim:
    job = claim.jobs[number]
    if job.state == "running" and job.attempt == 1:
        claim = _with_job(claim, number, job.to("completed"))
    # A claim goes with the last of its jobs.
    returned = claim.returned - {number}
    return claim._replace(returned=returned, exists=claim.exists and bool(returned))


def _leave(claim: Claim, view: View, number: int, rules: PlainRules) -> Claim:
    seen, job = view.jobs[number], claim.jobs[number]
    # The key of states admits one row.
    if not view.claim or seen.left or seen.ended or job.state:
        return claim
    return _with_job(claim, number, job.to("running", logs=rules.logs_started)._replace(left=True))


def _cancel(claim: Claim, view: View, rules: PlainRules) -> Claim:
    claim = _leave(claim, view, 0, rules)
    job = claim.jobs[0]
    if job.state != "running" or job.cancel:
        return claim
    return _with_job(claim, 0, job.to("running")._replace(cancel=True))


def _progress(claim: Claim, view: View, rules: PlainRules) -> Claim:
    claim = _leave(claim, view, 0, rules)
    job = claim.jobs[0]
    ours = job.state == "running" and job.attempt == 1
    return _with_job(claim, 0, job.to("running")) if ours else claim


def _reap(claim: Claim, view: View, rules: PlainRules) -> Claim:
    for number in range(len(claim.jobs)):
        claim = _leave(claim, view, number, rules)
        job = claim.jobs[number]
        if job.state == "running" and job.attempt == 1:
            claim = _with_job(claim, number, job.to("canceled" if job.cancel else "queued", events=2))
    return claim._replace(exists=False)


_WRITES: dict[Kind, Callable[[Claim, View, PlainRules], Claim]] = {
    Kind.COMPLETE: _complete,
    Kind.CANCEL: _cancel,
    Kind.PROGRESS: _progress,
    Kind.REAP: _reap,
}


def _with_job(claim: Claim, number: int, job: Job) -> Claim:
    return claim._replace(jobs=(*claim.jobs[:number], job, *claim.jobs[number + 1 :]))
