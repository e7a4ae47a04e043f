"""The same jobs on two sides, the real tables and the model's rows, and the effect of a write on both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from duly.core.decide import JobState, Transition, decide
from duly.core.job import JobSpec
from duly.core.outcome import AttemptOutcome, Canceled
from duly.core.policy import parse_stored_policy
from duly.core.reconciliation import ReconciliationKind, ReconciliationRecord
from duly.core.states import HELD, Outcome, Status
from duly.worker import settle_store as work
from duly.worker import workers_store as workers
from duly.worker.claim import ClaimedJob
from duly.worker.settle_store import Settleable
from tests.protocol import rows
from tests.protocol.invariants import AT_A_WRITE
from tests.protocol.rows import Row, Write
from tests.protocol.stage import Stage

CANCEL_REQUEST = Canceled("user", "enough")


class Sighting(NamedTuple):
    """What was read, and may be outdated when it is used."""

    job: Settleable
    hold: JobState
    ending: AttemptOutcome


@dataclass
class Known:
    """A worker, as the database should know it."""

    worker_id: UUID
    beat_at: datetime
    gone: bool = False
    grips: list[ClaimedJob] = field(default_factory=list)
    heard_of: set[UUID] = field(default_factory=set)
    """The claims whose answer it received."""


@dataclass
class Life:
    """A job, as the tables should contain it."""

    spec: JobSpec
    row: Row
    events: list[str]
    records: list[str] = field(default_factory=list)

    @property
    def job_id(self) -> UUID:
        return UUID(self.spec.job_id)

    def accept(self, write: Write | None, to: Transition | None = None) -> bool:
        if write is None:
            return False
        for name, holds in AT_A_WRITE.items():
            assert holds(self.row, write), name
        self.row = write.row
        self.events.extend(write.events)
        if to is not None and to.record is not None:
            self.records.append(str(write.row.status))
        return True


class Sides:
    """The expected state, beside the actual one."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.now = datetime.now(UTC).replace(microsecond=0)
        self.moment = int(self.now.timestamp() * 1000)
        # Ordered by number: the claim order must not be random.
        self.orgs = [UUID(f"{digit}{uuid4().hex[1:]}") for digit in "1e"]
        self.lives: dict[UUID, Life] = {}
        self.known: list[Known] = []
        self.claims: dict[UUID, tuple[int, list[UUID]]] = {}
        self.left: dict[UUID, set[UUID]] = {}
        """The jobs of each claim that its worker has not settled yet."""
        self.sights: list[Sighting] = []
        self.count = 0
        stage.prepare(self.orgs, self.now)

    def fresh_id(self) -> UUID:
        """Return a time-ordered id, ordered within the same instant too."""
        self.count += 1
        return UUID(f"{self.moment:012x}7{self.count:03x}8{uuid4().hex[:15]}")

    def run(self, work: Any, **how: Any) -> Any:
        return self.stage.run(work, self.now, **how)

    def write(
        self,
        decided: Sequence[tuple[Settleable, Transition]],
        over: Iterable[UUID] = (),
        *,
        commit: bool = True,
    ) -> None:
        answer = self.run(
            lambda conn: work.settle(conn, decided, actor_type="worker", actor_id="w", claim_ids=over),
            commit=commit,
        )
        for job, to in decided:
            life = self.lives[job.job_id]
            expected = rows.settle(life.row, job.attempt, to, self.now)
            assert (job.key in answer) == (expected is not None)
            if commit:
                life.accept(expected, to)
        if commit:
            for claim in over:
                self.claims.pop(claim, None)

    def decided(self, job: Settleable, hold: JobState, ending: AttemptOutcome) -> Transition:
        return decide(hold, ending, parse_stored_policy(job.policy).retry, self.now, 0.0)

    def record(self, kind: ReconciliationKind) -> ReconciliationRecord:
        return ReconciliationRecord.of(kind, {}, self.now)

    def is_held(self, grip: ClaimedJob) -> bool:
        row = self.lives[grip.job_id].row
        return row.attempt == grip.attempt and row.status in HELD

    def left_behind(self) -> list[UUID]:
        return sorted(claim for claim, (index, _) in self.claims.items() if self.known[index].gone)

    def check_found(self, found: workers.AbandonedJobs | None, expected: Sequence[UUID]) -> None:
        assert (found.claim_ids if found else []) == sorted(expected)
        # Once each: a worker that gave a job back and claimed it again has it in two claims.
        held = {
            job_id: JobState(row.status, row.attempt, row.returned, CANCEL_REQUEST if row.cancel else None)
            for claim in expected
            for job_id in self.claims[claim][1]
            if (row := self.lives[job_id].row).status in HELD and row.holder == self.claims[claim][0]
        }
        answer = [(job.job_id, hold) for job, hold in found.jobs] if found else []
        assert sorted(answer, key=lambda sighting: sighting[0]) == sorted(
            held.items(), key=lambda sighting: sighting[0]
        )

    def check_tables(self) -> None:
        sighting = self.stage.picture(self.orgs)
        assert sighting.jobs == {job_id: self.expected(life) for job_id, life in sorted(self.lives.items())}
        claimed = {claim: (index, sorted(ids)) for claim, (index, ids) in self.claims.items()}
        by_id = {worker.worker_id: index for index, worker in enumerate(self.known)}
        assert {claim: (by_id[index], ids) for claim, (index, ids) in sighting.claims.items()} == claimed

    def check_claims(self) -> None:
        for job_id, life in self.lives.items():
            if life.row.status in HELD:
                assert any(index == life.row.holder and job_id in ids for index, ids in self.claims.values())

    def expected(self, life: Life) -> dict[str, Any]:
        row = life.row
        snapshots = ["partial"] * row.partials + ["final"] * row.finals
        same = ("status", "outcome", "attempt", "returned", "event_seq", "errors", "partials", "progress")
        owed = row.status is Status.FAILED and life.spec.policy.lifecycle.requires_failed_bridge
        return {
            **{name: getattr(row, name) for name in same},
            "cancel": row.cancel,
            "holder": None if row.holder is None else self.known[row.holder].worker_id,
            "events": life.events,
            "event_seqs": list(range(1, row.event_seq + 1)),
            "seqs_by_commit": list(range(1, row.event_seq + 1)),
            "results": snapshots,
            "result_seqs": list(range(1, len(snapshots) + 1)),
            "records": life.records,
            "ready": row.waits_in == "ready",
            "scheduled": [row.due_at] if row.waits_in == "scheduled" else [],
            "letters": row.outcome is Outcome.DEAD,
            "debts": owed,
        }
