"""Claims by name and without gates give way to the claim that respects gates wherever one stands."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable

import psycopg
import pytest

from duly import Duly
from duly.db.database import Database
from duly.features.limits.service import Limits
from duly.features.queues.service import Queues
from duly.worker import claim as claims
from duly.worker.claim import Claimer, NamedJob
from tests.worker.blocking_jobs import WHY, BlockingJobs, enqueue

WORKER = uuid.uuid4()


async def claim_named(database: Database, org: uuid.UUID, job_id: uuid.UUID) -> list[claims.ClaimedJob]:
    async with database.engine() as conn:
        job = NamedJob("q:default", org, 0, job_id)
        return (await claims.claim_named_job(conn, job, worker_id=WORKER, claim_id=uuid.uuid4())).jobs


async def claim_open(database: Database) -> claims.Claim:
    async with database.engine() as conn:
        return await claims.claim_jobs(
            conn,
            worker_id=WORKER,
            claim_id=uuid.uuid4(),
            lane="q:default",
            slots=5,
            after_org=uuid.UUID(int=0),
            gates=False,
        )


async def test_a_named_job_is_claimed_before_older_ones_and_only_once(
    blocking: BlockingJobs, org: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    _, second = await enqueue(blocking.build, org, range(2))
    [job] = await claim_named(database, org, second.job_id)
    assert (job.job_id, job.attempt, job.queue) == (second.job_id, 1, "q:default")
    assert await claim_named(database, org, second.job_id) == []
    row = sql.execute("select worker_id, job_ids from duly.claims").fetchone()
    assert row == (WORKER, [second.job_id])
    query = "select event_type from duly.job_events where job_id = %s order by event_seq"
    events = sql.execute(query, [second.job_id])
    assert [event for (event,) in events.fetchall()] == ["job.queued", "job.started"]


Gate = Callable[[Duly, uuid.UUID], Awaitable[object]]
GATES: dict[str, Gate] = {
    "limit of the org": lambda app, org: Limits(app).set(org, max_running=1, **WHY),
    "rate of the org": lambda app, org: Limits(app).set(org, starts_per_second=1, burst=1, **WHY),
    "pause of the org": lambda app, org: Limits(app).pause(org, **WHY),
    "limit of the job type": lambda app, _: Limits(app).set(None, "site.build", max_running=1, **WHY),
    "pause of the queue": lambda app, _: Queues(app).pause("q:default", **WHY),
}


@pytest.mark.parametrize("gate", GATES)
async def test_claims_that_ignore_gates_claim_nothing_where_one_stands(
    app: Duly, blocking: BlockingJobs, org: uuid.UUID, database: Database, gate: str
) -> None:
    [job] = await enqueue(blocking.build, org, [1])
    await GATES[gate](app, org)
    assert await claim_named(database, org, job.job_id) == []
    claim = await claim_open(database)
    assert claim.jobs == []
    assert claim.more == (gate != "pause of the queue")


async def test_a_limit_of_queued_jobs_does_not_count_as_a_gate(
    app: Duly, blocking: BlockingJobs, org: uuid.UUID, database: Database
) -> None:
    await Limits(app).set(org, max_waiting=10, **WHY)
    first, second = await enqueue(blocking.build, org, range(2))
    assert [job.job_id for job in await claim_named(database, org, second.job_id)] == [second.job_id]
    assert [job.job_id for job in (await claim_open(database)).jobs] == [first.job_id]


async def test_a_claim_round_counts_jobs_of_an_org_with_a_limit(
    app: Duly, blocking: BlockingJobs, org: uuid.UUID, claimer: Claimer
) -> None:
    await Limits(app).set(org, max_running=2, **WHY)
    await enqueue(blocking.build, org, range(5))
    assert [len(await claimer.round(WORKER, 5)) for _ in range(2)] == [2, 0]
    assert (await Limits(app).get(org)).running == 2


async def test_a_claim_round_follows_a_notification_to_its_job(
    blocking: BlockingJobs, org: uuid.UUID, claimer: Claimer
) -> None:
    handles = await enqueue(blocking.build, org, range(3))
    claimer.hint(f"q:default {org} 0 {handles[1].job_id}")
    assert [job.job_id for job in await claimer.round(WORKER, 5)] == [handles[1].job_id]
    rest = await claimer.round(WORKER, 5)
    assert [job.job_id for job in rest] == [handles[0].job_id, handles[2].job_id]


@pytest.mark.parametrize("notification", ["", "q:default", "q:default x y z", "q:other {org} 0 {job}", "a b"])
async def test_a_claim_round_finds_jobs_whatever_a_notification_says(
    blocking: BlockingJobs, org: uuid.UUID, claimer: Claimer, notification: str
) -> None:
    [handle] = await enqueue(blocking.build, org, [1])
    claimer.hint(notification.format(org=org, job=uuid.uuid4()))
    assert [job.job_id for job in await claimer.round(WORKER, 5)] == [handle.job_id]
