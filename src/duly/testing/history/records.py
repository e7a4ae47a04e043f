"""The parts of a history: the clients' log, effects, observations, and the tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

Answer = Literal["ok", "fail", "unknown"]
"""`fail`: certainly not done. `unknown`: the answer was lost."""


@dataclass(frozen=True, slots=True)
class RecordedSubmission:
    """A client's request to enqueue a job."""

    client: str
    org_id: UUID
    idempotency_key: str
    job_type: str
    answer: Answer
    job_id: UUID | None = None
    """The job id of the answer; None unless the answer is ok."""
    request: str = ""
    """Identifies the request, so that its answer replaces it in the log; see `Recorder.begin`."""


@dataclass(frozen=True, slots=True)
class Cancellation:
    """A client's cancel request; `status` is the status in the answer."""

    client: str
    org_id: UUID
    job_id: UUID
    answer: Answer
    status: str | None = None
    request: str = ""
    """See `RecordedSubmission.request`."""


@dataclass(frozen=True, slots=True)
class StreamRead:
    """The events of one job that a reader received over all its reconnects, in order."""

    reader: str
    org_id: UUID
    job_id: UUID
    events: tuple[tuple[int, str], ...]
    """(event_seq, event_type)."""
    to_the_end: bool
    """Whether the stream ended by itself."""


@dataclass(frozen=True, slots=True)
class FeedRead:
    """The events of an org's feed that a reader received over all its reconnects, until the run was quiet."""

    reader: str
    org_id: UUID
    events: tuple[tuple[UUID, int], ...]
    """(job_id, event_seq)."""


@dataclass(frozen=True, slots=True)
class IsolationProbe:
    """A caller's request for an id of another org, and for an unknown id."""

    caller: UUID
    question: str
    foreign: str
    unknown: str
    """Both answers, with the requested id replaced by a placeholder."""
    orgs_named: tuple[UUID, ...] = ()
    """Every org that an answer to this caller named."""


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect of a handler: in `ctx.transaction()`, in a failure callback, or outside of the database."""

    kind: Literal["transaction", "bridge", "outside"]
    org_id: UUID
    job_id: UUID
    attempt: int
    """The fence, `ctx.job.attempt`."""
    key: str = ""
    """The deduplication key of the handler; the same for every attempt of a job."""


@dataclass(frozen=True, slots=True)
class JobObservation:
    """A job as an observer read it. The observations of one observer are in the order of time."""

    observer: str
    org_id: UUID
    job_id: UUID
    status: str
    attempt: int
    """The fence."""
    event_seq: int
    progress_percent: float
    visible_events: int
    """The number of events in the same snapshot."""
    digest: str
    """The digest of the whole row, which must not change once the job ended; empty while it is active."""


@dataclass(frozen=True, slots=True)
class LeaseObservation:
    """How long an expired lease survived while a living worker could have swept, by the database's clock."""

    worker_id: UUID
    expired_for: float
    """Seconds beyond the lease, without the time in which the database was away."""
    lost: bool = False
    """Whether the worker had been declared lost."""


class AuditObservation(NamedTuple):
    """An audit entry as an observer read it."""

    entry_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class History:
    """One run, from the first request until it is quiet. Tables are rows as dicts of their columns."""

    submissions: list[RecordedSubmission] = field(default_factory=list)
    cancellations: list[Cancellation] = field(default_factory=list)
    streams: list[StreamRead] = field(default_factory=list)
    feeds: list[FeedRead] = field(default_factory=list)
    probes: list[IsolationProbe] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    observations: list[JobObservation] = field(default_factory=list)
    leases: list[LeaseObservation] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    """The view duly.jobs."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """All events, as `duly.events_of` returns them."""
    results: list[dict[str, Any]] = field(default_factory=list)
    """The view duly.all_results, without payloads."""
    dead_letters: list[dict[str, Any]] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)
    """The table duly.alerts, those of dead letters: with `org_id` and `job_id`."""
    alerting: bool = False
    """Whether alerting ran to the end, so that each dead letter must have its alert."""
    ledger: list[dict[str, Any]] = field(default_factory=list)
    schedules: list[dict[str, Any]] = field(default_factory=list)
    ticks: list[dict[str, Any]] = field(default_factory=list)
    """The table duly.schedule_ticks."""
    queued: list[UUID] = field(default_factory=list)
    """Job ids in duly.ready and duly.scheduled."""
    owed_callbacks: list[UUID] = field(default_factory=list)
    """Job ids in duly.bridge_debts."""
    audit_observations: list[tuple[str, str]] = field(default_factory=list)
    """(entry id, digest) of audit entries as observers read them."""
    audit: list[dict[str, Any]] = field(default_factory=list)
    """The table duly.audit_entries."""
    seals: list[dict[str, Any]] = field(default_factory=list)
    """The table duly.audit_seals."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    sweep_seconds: float = 2.0
    """The interval of the reaper."""
    allowed_lateness: float = 5.0
    """Seconds by which a loaded machine may be late without breaking a promise about time."""
    open_seconds: float = 1.0
    """How long a transaction may be open before its first statement: events carry its start time."""
    workers: list[dict[str, Any]] = field(default_factory=list)
    """The table duly.workers."""
    required_effects: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The effects that a job type must have: `transaction` and `outside` when it completes, `bridge` when it
    fails (`on_failed`), `bridge.dead` when it dies (`on_dead`)."""


@dataclass(frozen=True, slots=True)
class PromiseViolation:
    """A violated promise, with the evidence."""

    promise: str
    """I1 to I19."""
    message: str
    org_id: UUID | None = None
    job_id: UUID | None = None
    evidence: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        job = f" (job {self.job_id})" if self.job_id else ""
        evidence = ", ".join(f"{name}={value}" for name, value in self.evidence.items())
        return f"{self.promise}: {self.message}{job}{'; ' if evidence else ''}{evidence}"
