"""Actions of clients, workers, reapers and reconcilers, on both sides. Numbers select from what exists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from uuid import UUID, uuid4

from duly.core.decide import JobState
from duly.core.job import Actor, JobSpec, Origin
from duly.core.outcome import AttemptOutcome, Completed, ErrorInfo, Failed, Lost, Reconciled
from duly.core.policy import JobPolicy, LifecyclePolicy, RetryPolicy
from duly.core.reconciliation import ReconciliationKind
from duly.core.states import HELD, Status
from duly.db.pool import Connection
from duly.jobs import stale_jobs
from duly.jobs import store as job_store
from duly.worker import claim as claims
from duly.worker import settle_store as work
from duly.worker import workers_store as workers
from duly.worker.claim import ClaimedJob, NamedJob
from duly.worker.settle_store import Key, ProgressUpdate
from duly.worker.workers_store import HeldJobUpdate, WorkerIdentity
from tests.protocol import model, rows
from tests.protocol.sides import CANCEL_REQUEST, Known, Life, Sides, Sighting

LEASE = timedelta(seconds=30)
QUEUE = "q:default"
_DONE = Completed({"ok": 1})
ENDINGS: dict[str, AttemptOutcome] = {
    **{name: ending for name, ending in model.ENDINGS.items() if not isinstance(ending, Reconciled)},
    "blocked": Failed(ErrorInfo("no.consent", "not allowed"), blocked=True),
    "partly done": Completed({"ok": 1}, partially=True),
}


class Acts(Sides):
    """All actions, possible in any order."""

    # Clients

    def enqueue(self, org: int, later: bool, attempts: int, bridge: bool) -> None:
        due_at = self.now + timedelta(hours=1) if later else None
        policy = JobPolicy(
            queue=QUEUE,
            retry=RetryPolicy(max_attempts=attempts, delays=(timedelta(hours=1),)),
            lifecycle=LifecyclePolicy(requires_failed_bridge=bridge),
        )
        origin = Origin(self.orgs[org], Actor.user("u1"), "r1", "r1")
        job_id = self.fresh_id()
        spec = JobSpec(
            *(job_id.hex, uuid4().hex, "step.take", origin, policy, "{}"),
            scheduled_for=due_at,
            idempotency_key=str(job_id),
        )
        write = rows.enqueue(due_at)
        assert self.submit(spec)
        self.lives[job_id] = Life(spec, write.row, list(write.events))

    def enqueue_again(self, job: int) -> None:
        """Enqueue the same job again, as a client that lost the answer; a time in the past is refused."""
        spec = self.life(job).spec
        if spec.scheduled_for is None or spec.scheduled_for >= self.now:
            assert not self.submit(spec)

    def life(self, number: int) -> Life:
        every = list(self.lives.values())
        return every[number % len(every)]

    def submit(self, spec: JobSpec) -> bool:
        org = spec.origin.org_id
        [written] = self.run(lambda conn: job_store.enqueue_jobs(conn, org, [spec]), org=org)
        assert written.job_id == UUID(spec.job_id)
        return bool(written.created)

    def cancel(self, job: int) -> None:
        life = self.life(job)
        org, job_id, status = life.spec.origin.org_id, life.job_id, life.row.status
        answer = self.run(
            lambda conn: job_store.cancel_job(
                conn, org, job_id, by=CANCEL_REQUEST.by, reason=CANCEL_REQUEST.reason, actor=Actor.user("u1")
            ),
            org=org,
        )
        over = {Status.QUEUED: "canceled", Status.CANCELED: "canceled"}
        assert answer == ("requested" if status in HELD else over.get(status, "finished"))
        life.accept(rows.cancel(life.row))

    # Workers

    def boot(self) -> None:
        if sum(not worker.gone for worker in self.known) >= 3:
            return
        identity = WorkerIdentity(uuid4(), "w", "h", 1, "0", (QUEUE,), 5, LEASE)
        self.run(lambda conn: workers.register(conn, identity))
        self.known.append(Known(identity.worker_id, self.now))

    def claim(self, index: int, slots: int, fate: str, way: str) -> None:
        index %= len(self.known)
        worker, claim_id = self.known[index], self.fresh_id()
        ready = [life for life in self.lives.values() if life.row.waits_in == "ready"]
        new = [life for life in ready if life.row.attempt == 0] if way == "named" else []
        named = [new[slots % len(new)]] if new else []

        async def write(conn: Connection) -> claims.Claim:
            if named:
                spec = named[0].spec
                job = NamedJob(QUEUE, spec.origin.org_id, -spec.policy.priority, named[0].job_id)
                return await claims.claim_named_job(conn, job, worker_id=worker.worker_id, claim_id=claim_id)
            return await claims.claim_jobs(
                conn,
                worker_id=worker.worker_id,
                claim_id=claim_id,
                lane=QUEUE,
                slots=slots,
                after_org=UUID(int=0),
                gates=way == "gates",
            )

        taken = self.run(write, commit=fate != "undone").jobs
        ready = named or ready
        assert min(len(ready), 1 - worker.gone) <= len(taken) <= (0 if worker.gone else slots)
        if fate == "undone" or not taken:
            return
        for grip in taken:
            life = self.lives[grip.job_id]
            assert life.accept(rows.claim(life.row, index)), "only what is ready is claimed"
            answer = (grip.attempt, grip.returned, grip.partial_count, grip.progress_percent)
            row = life.row
            assert answer == (row.attempt, row.returned, row.partials, row.progress)
        for one in {grip.claim_id for grip in taken}:
            self.claims[one] = (index, [grip.job_id for grip in taken if grip.claim_id == one])
            self.left[one] = set(self.claims[one][1])
        if fate == "answered":
            worker.grips.extend(taken)
            worker.heard_of |= {grip.claim_id for grip in taken}

    def end(self, which: list[tuple[str, int]], ending: str, heard: bool, fate: str) -> None:
        """Write the outcome of an attempt, possibly long after it should have been written."""
        self.settle(self.picked(which), ENDINGS[ending], heard, fate)

    def picked(self, which: list[tuple[str, int]]) -> list[ClaimedJob]:
        every = [grip for worker in self.known for grip in worker.grips]
        kinds = {
            "zombie": [grip for grip in every if grip.attempt < self.lives[grip.job_id].row.attempt],
            "held": [grip for grip in every if self.is_held(grip)],
            "any": every,
        }
        found = [kinds[kind][n % len(kinds[kind])] for kind, n in which if kinds[kind]]
        return list({grip.key: grip for grip in found}.values())

    def settle(self, batch: Iterable[ClaimedJob], ending: AttemptOutcome, heard: bool, fate: str) -> None:
        decided = []
        for grip in batch:
            cancel = (
                CANCEL_REQUEST
                if heard and self.is_held(grip) and self.lives[grip.job_id].row.cancel
                else None
            )
            hold = JobState(Status.RUNNING, grip.attempt, grip.returned, cancel)
            decided.append((grip, self.decided(grip, hold, ending)))
        over = self.claims_over([grip for grip, _ in decided])
        self.write(decided, over, commit=fate != "undone")
        if fate != "undone":
            self.take_from_claims([grip for grip, _ in decided])

    def claims_over(self, batch: Sequence[ClaimedJob]) -> list[UUID]:
        """Return the claims whose last jobs these are."""
        ended = {grip.job_id for grip in batch}
        return [claim for claim in {grip.claim_id for grip in batch} if self.left[claim] <= ended]

    def take_from_claims(self, batch: Sequence[ClaimedJob]) -> None:
        for grip in batch:
            self.left[grip.claim_id].discard(grip.job_id)

    def complete(self, which: list[tuple[str, int]], fate: str) -> None:
        """Complete attempts as a worker does: those of the plain path, then what is not on it any more."""
        batch = self.picked(which)
        over = self.claims_over(batch)

        async def write(conn: Connection) -> set[Key]:
            plain = [(grip, {"ok": 1}) for grip in batch if grip.is_plain]
            other = await work.complete_plain(conn, plain, claim_ids=over if len(plain) == len(batch) else [])
            rest = [(grip, {"ok": 1}) for grip in batch if not grip.is_plain or grip.key[:2] in other]
            if not rest:
                return set()
            return await work.complete(conn, rest, worker_id=batch[0].org_id, claim_ids=over)

        lost = self.run(write, commit=fate != "undone") if batch else set()
        for grip in batch:
            life = self.lives[grip.job_id]
            hold = JobState(Status.RUNNING, grip.attempt, grip.returned)
            expected = rows.settle(life.row, grip.attempt, self.decided(grip, hold, _DONE), self.now)
            assert (grip.key in lost) == (expected is None)
            if fate != "undone":
                life.accept(expected)
        if fate != "undone":
            self.take_from_claims(batch)
            for claim in over:
                self.claims.pop(claim, None)

    def chunk(self, which: tuple[str, int], percent: float) -> None:
        for grip in self.picked([which]):
            life = self.lives[grip.job_id]
            answer = self.run(
                lambda conn, grip=grip: work.store_chunk(
                    conn, grip, chunk_key=None, payload={"n": 1}, progress_percent=percent
                )
            )
            accepted = life.accept(rows.store_chunk(life.row, grip.attempt, min(percent, 100)))
            assert answer == (life.row.partials if accepted else None)

    def progress(self, which: list[tuple[str, int]], percent: float) -> None:
        steps = [ProgressUpdate(grip, percent) for grip in self.picked(which)]
        answer = self.run(lambda conn: work.write_progress(conn, steps))
        accepted = set()
        for job in (step.job for step in steps):
            life = self.lives[job.job_id]
            if life.accept(rows.keep_progress(life.row, job.attempt, min(percent, 100))):
                accepted.add(job.key)
        assert answer == accepted

    def beat(self, index: int) -> None:
        worker = self.known[index % len(self.known)]
        answer = self.stage.beat(worker.worker_id, [grip.key for grip in worker.grips], self.now)
        if worker.gone:
            assert answer is None, "a lost worker stays lost"
            return
        worker.beat_at = self.now
        assert answer is not None
        assert sorted(answer, key=lambda news: news.key) == sorted(
            self.news_of(worker), key=lambda news: news.key
        )

    def news_of(self, worker: Known) -> list[HeldJobUpdate]:
        return [
            HeldJobUpdate(grip.key, not held, CANCEL_REQUEST if held else None)
            for grip in worker.grips
            if not (held := self.is_held(grip)) or self.lives[grip.job_id].row.cancel
        ]

    def stop(self, index: int) -> None:
        worker = self.known[index % len(self.known)]
        self.run(lambda conn: workers.stop(conn, worker.worker_id))
        worker.gone = True

    def find_unknown(self, index: int) -> None:
        """Return jobs that a worker has claimed without knowing it."""
        index %= len(self.known)
        worker = self.known[index]
        expected = [c for c, (owner, _) in self.claims.items() if owner == index and c not in worker.heard_of]
        found = self.run(
            lambda conn: workers.lock_abandoned(
                conn, limit=100, worker_id=worker.worker_id, known=worker.heard_of
            ),
        )
        self.check_found(found, expected)
        if found is not None:
            free = ENDINGS["give back"]
            holds = [(job, JobState(Status.RUNNING, job.attempt, job.returned)) for job, _ in found.jobs]
            self.write([(job, self.decided(job, hold, free)) for job, hold in holds], found.claim_ids)

    # Time, reapers and reconcilers

    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    def promote(self) -> None:
        due = [life for life in self.lives.values() if rows.promote(life.row, self.now) != life.row]
        assert self.run(lambda conn: claims.promote_due(conn, limit=100)) == len(due)
        for life in due:
            life.row = rows.promote(life.row, self.now)

    def lose(self) -> None:
        silent = [w for w in self.known if not w.gone and w.beat_at + LEASE < self.now]
        assert set(self.run(workers.declare_lost)) == {w.worker_id for w in silent}
        for worker in silent:
            worker.gone = True

    def sleep(self, index: int) -> None:
        """Let one worker be silent beyond its lease; a reaper detects it, another worker takes over."""
        self.boot()
        _, *others = self.living(index)
        self.wait(2 * LEASE.seconds)
        for other in others:
            self.beat(other)
        self.lose()
        self.take_over(100)
        for other in others[:1]:
            self.claim(other, 4, "answered", "gates")

    def living(self, first: int) -> list[int]:
        """Return the workers that are not lost, starting with one of them."""
        alive = [index for index, worker in enumerate(self.known) if not worker.gone]
        first %= len(alive)
        return alive[first:] + alive[:first]

    def take_over(self, limit: int) -> None:
        """Run a reaper's sweep."""
        found = self.run(lambda conn: workers.lock_abandoned(conn, limit=limit))
        self.check_found(found, self.left_behind()[:limit])
        if found is not None:
            lost = Lost(record=self.record(ReconciliationKind.LOST_LEASE))
            decided = [(job, self.decided(job, hold, lost)) for job, hold in found.jobs]
            self.write(decided, found.claim_ids)

    def see_abandoned(self) -> None:
        """Run a slow or a second reaper."""
        found = self.run(lambda conn: workers.lock_abandoned(conn, limit=100))
        self.check_found(found, self.left_behind())
        self.sights += [Sighting(job, hold, Lost()) for job, hold in (found.jobs if found else [])]

    def suspect(self, job: int) -> None:
        """Let a reconciler read a job; when it acts, much may have happened."""
        life = self.life(job)
        [sighting] = self.run(
            lambda conn: stale_jobs.read_evidence(conn, [(life.spec.origin.org_id, life.job_id)])
        )
        row = life.row
        cancel = CANCEL_REQUEST if row.cancel else None
        assert sighting.state.status is row.status
        assert sighting.queued == (row.waits_in is not None)
        if row.status is None or row.status.terminal:
            return
        assert sighting.state == JobState(row.status, row.attempt, row.returned, cancel)
        kind = ReconciliationKind.STALE_RUNNING if row.status in HELD else ReconciliationKind.STALE_QUEUED
        self.sights.append(Sighting(sighting, sighting.state, Reconciled(self.record(kind))))

    def look_away(self, job: int, ending: str) -> None:
        """Let a reconciler read a job; before it acts, the job was claimed and returned."""
        self.boot()
        self.suspect(job)
        self.claim(self.living(0)[0], 4, "answered", "open")
        self.end([("held", number) for number in range(8)], ending, heard=False, fate="answered")

    def overrule(self, late: bool, sight: int, unqueued: bool) -> None:
        moved = [
            sighting
            for sighting in self.sights
            if self.lives[sighting.job.job_id].row.attempt > sighting.hold.attempt
        ]
        sights = moved if late else self.sights
        if not sights:
            return
        job, hold, ending = sights[-1 - sight % len(sights)]
        to = self.decided(job, hold, ending)
        if hold.status in HELD:
            self.write([(job, to)])
            return
        answer = self.run(
            lambda conn: work.fail_waiting(
                conn, [(job, to)], actor_type="system", actor_id="reconciler", unqueued=unqueued
            )
        )
        life = self.lives[job.job_id]
        # Every queued job is in a queue.
        accepted = not unqueued and life.accept(rows.fail_waiting(life.row, job.attempt, to), to)
        assert answer == ({(job.org_id, job.job_id)} if accepted else set())
