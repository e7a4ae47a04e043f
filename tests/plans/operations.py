"""The hot operations of the engine, each with its preparation and the measured step."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg

from duly import Actor, Duly, context
from duly.core.decide import JobState, decide
from duly.core.outcome import Completed, ErrorInfo, Retried
from duly.core.policy import RetryPolicy
from duly.core.states import Status
from duly.db.pool import Connection
from duly.db.session_settings import ENGINE_ROLE_SQL, begin_tenant_sql
from duly.jobs import stale_jobs as stale_jobs
from duly.jobs import store as job_store
from duly.worker import claim as claims
from duly.worker import settle_store as work
from duly.worker import workers_store as workers
from duly.worker.settle_store import ProgressUpdate
from tests.plans.plan_recorder import OPTIONS, PlanRecorder
from tests.plans.stock import Stock

BATCH = 100
FIRST = uuid.UUID(int=0)
app = Duly()


@app.job("plans.noop")
async def noop(number: int) -> None: ...


@dataclass
class Stage:
    """A session of the engine or of a tenant whose plans are recorded."""

    stock: Stock
    conn: Connection
    recorder: PlanRecorder

    async def act(self, verb: Verb, *, in_vain: bool = False) -> PlanRecorder:
        """Run it in a transaction of its own, which stays open; return its plans."""
        opening = begin_tenant_sql(self.stock.org_id) if verb in TENANT else f"begin; {ENGINE_ROLE_SQL}"
        await self.conn.execute(opening, prepare=False)
        done = await verb(self)
        assert done or in_vain
        # For the server a query ends with the next command.
        await self.conn.execute("set local application_name = ''", prepare=False)
        return self.recorder

    async def claim(self) -> tuple[uuid.UUID, list[claims.ClaimedJob]]:
        """Claim jobs for the next step; from here on only that step is recorded."""
        worker_id = uuid.uuid4()
        taken = await claims.claim_jobs(
            self.conn,
            worker_id=worker_id,
            claim_id=uuid.uuid4(),
            lane="q:default",
            slots=BATCH,
            after_org=FIRST,
        )
        self.recorder.plans.clear()
        return worker_id, taken.jobs


Verb = Callable[[Stage], Awaitable[object]]


async def claim(stage: Stage) -> object:
    """Claim twice: the second claim continues where the first has left the queue."""
    await stage.claim()
    taken = await claims.claim_jobs(
        stage.conn,
        worker_id=uuid.uuid4(),
        claim_id=uuid.uuid4(),
        lane="q:default",
        slots=BATCH,
        after_org=FIRST,
    )
    return taken.jobs


async def claim_open(stage: Stage) -> object:
    """Claim without gates where none counts or holds back jobs."""
    taken = await claims.claim_jobs(
        stage.conn,
        worker_id=uuid.uuid4(),
        claim_id=uuid.uuid4(),
        lane="q:default",
        slots=BATCH,
        after_org=FIRST,
        gates=False,
    )
    return taken.jobs


async def claim_named(stage: Stage) -> object:
    """Claim the job that a notification named."""
    row = await (
        await stage.conn.execute(
            "select queue, org_id, rank, job_id from duly.ready where fresh limit 1", prepare=False
        )
    ).fetchone()
    if row is None:
        return None
    stage.recorder.plans.clear()
    job = claims.NamedJob(*row)
    return (await claims.claim_named_job(stage.conn, job, worker_id=uuid.uuid4(), claim_id=uuid.uuid4())).jobs


async def complete(stage: Stage) -> object:
    worker_id, held = await stage.claim()
    lost = await work.complete(
        stage.conn, [(job, None) for job in held], worker_id=worker_id, claim_ids=[held[0].claim_id]
    )
    return held and not lost


async def settle(stage: Stage) -> object:
    """Settle; every other job is retried."""
    worker_id, held = await stage.claim()
    endings = [Retried(ErrorInfo("boom", "it broke")) if n % 2 else Completed() for n in range(len(held))]
    decided = [
        (job, decide(JobState(Status.RUNNING, job.attempt), ending, RetryPolicy(), datetime.now(UTC), 0.5))
        for job, ending in zip(held, endings, strict=True)
    ]
    settled = await work.settle(
        stage.conn, decided, actor_type="worker", actor_id=str(worker_id), claim_ids=[held[0].claim_id]
    )
    return held and len(settled) == len(held)


async def progress(stage: Stage) -> object:
    _, held = await stage.claim()
    return await work.write_progress(stage.conn, [ProgressUpdate(job, 40.0, "half") for job in held])


async def store_chunk(stage: Stage) -> object:
    _, held = await stage.claim()
    return await work.store_chunk(stage.conn, held[0], chunk_key="a", payload={"n": 1}, progress_percent=10.0)


async def peek(stage: Stage) -> object:
    sight = await claims.peek_lanes(stage.conn, ["q:default", "q:critical"])
    return sight.lanes


async def promote(stage: Stage) -> object:
    return await claims.promote_due(stage.conn, limit=BATCH // 2)


async def enqueue(stage: Stage) -> object:
    return await _enqueue(stage, identified=False)


async def enqueue_runs(stage: Stage) -> object:
    return await _enqueue(stage, identified=True)


async def _enqueue(stage: Stage, *, identified: bool) -> object:
    with context(org_id=stage.stock.org_id, actor=Actor.user("u1"), request_id="r"):
        which = [noop.options(run_identity=n) if identified else noop for n in range(BATCH)]
        specs = [job.options(idempotency_key=str(uuid.uuid4())).call(n).spec() for n, job in enumerate(which)]
    return await job_store.enqueue_jobs(stage.conn, stage.stock.org_id, specs)


async def read(stage: Stage) -> object:
    return await job_store.read_job(stage.conn, stage.stock.org_id, stage.stock.job_id)


async def lose(stage: Stage) -> object:
    """Look for lost workers; there are none, which is the usual case."""
    return not await workers.declare_lost(stage.conn)


async def abandoned(stage: Stage) -> object:
    await _lose_one(stage)
    found = await workers.lock_abandoned(stage.conn, limit=BATCH)
    return found and found.jobs


async def lost(stage: Stage) -> object:
    await _lose_one(stage)
    return await stale_jobs.find_lost(stage.conn, limit=BATCH)


async def _lose_one(stage: Stage) -> None:
    await stage.conn.execute("""
        update duly.workers w set lost_at = now()
        where w.worker_id = (select c.worker_id from duly.claims c order by c.worker_id limit 1)
    """)
    stage.recorder.plans.clear()


TENANT = (enqueue, enqueue_runs, read)


def beat(stock: Stock) -> PlanRecorder:
    """Send a heartbeat with the state of a hundred claimed jobs; synchronous, as in the product."""
    with psycopg.connect(stock.url, options=OPTIONS, autocommit=True, prepare_threshold=None) as conn:
        held = conn.execute("""
            select org_id, job_id, attempt, worker_id from duly.job_states where status = 'running' limit 100
        """).fetchall()
        recorder = PlanRecorder(conn)
        workers.beat(conn, held[0][3], [(row[0], row[1], row[2]) for row in held], draining=False)
    return recorder
