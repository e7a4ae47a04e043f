"""What a history consists of: the clients' log, the effects outside, what observers saw, and the tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

Answer = Literal["ok", "fail", "unknown"]
"""`fail` means: surely not done. `unknown` means: the answer was lost."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A client asked for a job."""

    client: str
    org_id: UUID
    idempotency_key: str
    job_type: str
    answer: Answer
    job_id: UUID | None = None
    """What the client was told; None unless the answer is ok."""
    asked: str = ""
    """Names the question, so that its answer finds it in the log; see `Recorder.ask`."""


@dataclass(frozen=True, slots=True)
class Cancellation:
    """A client asked for the end of a job; `told` is the status it was answered."""

    client: str
    org_id: UUID
    job_id: UUID
    answer: Answer
    told: str | None = None
    asked: str = ""
    """As that of a submission."""


@dataclass(frozen=True, slots=True)
class StreamRead:
    """What one reader of one job's events saw over all its reconnects, in the order it saw it."""

    reader: str
    org_id: UUID
    job_id: UUID
    events: tuple[tuple[int, str], ...]
    """(event_seq, event_type)."""
    to_the_end: bool
    """Whether the stream said that it was over."""


@dataclass(frozen=True, slots=True)
class FeedRead:
    """What a reader of an org's feed saw over all its reconnects; its last look was when all was quiet."""

    reader: str
    org_id: UUID
    events: tuple[tuple[UUID, int], ...]
    """(job_id, event_seq)."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A caller asked for an id of another org, and for one that nobody has."""

    caller: UUID
    question: str
    foreign: str
    unknown: str
    """Both answers, with the asked id replaced by a mark."""
    orgs_seen: tuple[UUID, ...] = ()
    """Every org that was named in any answer to this caller."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Something a handler did: in `ctx.transaction()`, in a failure callback, or outside of the database."""

    kind: Literal["transaction", "bridge", "outside"]
    org_id: UUID
    job_id: UUID
    attempt: int
    """The fence, `ctx.job.attempt`."""
    key: str = ""
    """The dedup key the handler used; the same for every attempt of a job."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What an observer saw of a job in one look. Its looks at one job are in the order of time."""

    observer: str
    org_id: UUID
    job_id: UUID
    status: str
    attempt: int
    """The fence."""
    event_seq: int
    progress_percent: float
    events_seen: int
    """How many events were visible in the same snapshot."""
    digest: str
    """Of the whole row, for rows that must not change; empty while the job is active."""


@dataclass(frozen=True, slots=True)
class LeaseSight:
    """How long expired leases have survived while somebody could have swept, by the database's clock."""

    worker_id: UUID
    expired_for: float
    """Seconds beyond the lease, not counting the time in which the database was away."""
    lost: bool = False
    """Whether the worker was declared lost by then."""


class AuditSight(NamedTuple):
    """An audit entry as an observer saw it."""

    entry_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class History:
    """One run, from the first question to the quiet after it. Tables are rows as dicts of their columns."""

    submissions: list[Submission] = field(default_factory=list)
    cancellations: list[Cancellation] = field(default_factory=list)
    streams: list[StreamRead] = field(default_factory=list)
    feeds: list[FeedRead] = field(default_factory=list)
    probes: list[Probe] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    sights: list[Sight] = field(default_factory=list)
    leases: list[LeaseSight] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    """The view duly.jobs."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """The table duly.event_log."""
    results: list[dict[str, Any]] = field(default_factory=list)
    """The table duly.result_snapshots, without payloads."""
    dead_letters: list[dict[str, Any]] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)
    """The table duly.alerts, those of dead letters: with `org_id` and `job_id`."""
    alerting: bool = False
    """Whether somebody looked for dead letters to the end, so that each must have its alert."""
    ledger: list[dict[str, Any]] = field(default_factory=list)
    schedules: list[dict[str, Any]] = field(default_factory=list)
    ticks: list[dict[str, Any]] = field(default_factory=list)
    """The table duly.schedule_ticks."""
    waiting: list[UUID] = field(default_factory=list)
    """Job ids in duly.ready and duly.scheduled."""
    debts: list[UUID] = field(default_factory=list)
    """Job ids in duly.bridge_debts."""
    audit_sights: list[tuple[str, str]] = field(default_factory=list)
    """(entry id, digest) of audit entries as observers saw them."""
    audit: list[dict[str, Any]] = field(default_factory=list)
    """The table duly.audit_entries."""
    seals: list[dict[str, Any]] = field(default_factory=list)
    """The table duly.audit_seals."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    sweep_seconds: float = 2.0
    """How often expired leases are looked for."""
    allowed_lateness: float = 5.0
    """Seconds by which a loaded machine may be late without breaking a promise about time."""
    open_seconds: float = 1.0
    """How long a transaction may be open before it sees something: events tell the time when theirs began."""
    workers: list[dict[str, Any]] = field(default_factory=list)
    """The table duly.workers."""
    makes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The effects that job types never leave out: `transaction` and `outside` when they complete, `bridge`
    when they fail (`on_failed`), `bridge.dead` when they die (`on_dead`)."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that does not hold, and what shows it."""

    promise: str
    """I1 to I19."""
    message: str
    org_id: UUID | None = None
    job_id: UUID | None = None
    evidence: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        whose = f" (job {self.job_id})" if self.job_id else ""
        shown = ", ".join(f"{name}={value}" for name, value in self.evidence.items())
        return f"{self.promise}: {self.message}{whose}{'; ' if shown else ''}{shown}"
