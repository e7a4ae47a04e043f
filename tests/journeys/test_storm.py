"""Concurrent clients, workers and cancels on the same few jobs; then all tables must be consistent."""

from __future__ import annotations

import asyncio
import random
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly, Job, Status, context, errors
from duly.core.decide import JobState, decide
from duly.core.outcome import AttemptOutcome, Canceled, Completed, ErrorInfo, Failed, Lost, Retried, Snoozed
from duly.core.policy import RetryPolicy
from duly.db.database import retry_transaction
from duly.worker import claim as claims
from duly.worker import settle_store as work
from tests.journeys.consistency import BOOKS

ERROR = ErrorInfo("boom", "it broke")
ENDINGS: list[AttemptOutcome] = [
    *(Completed({"ok": 1}), Completed(None), Retried(ERROR), Failed(ERROR), Lost(), Snoozed(timedelta(0))),
    *(Snoozed(timedelta(hours=1)), Canceled("worker", "asked")),
]


async def _client(take: Job[[int], None], dice: random.Random, known: list[Any]) -> None:
    for _ in range(40):
        identity = dice.choice([None, None, f"run-{dice.randrange(4)}"])
        calls = [
            take.options(idempotency_key=f"key-{dice.randrange(150)}", run_identity=identity).call(n)
            for n in range(dice.randrange(1, 5))
        ]
        known.extend(await take.app.enqueue_many(calls))


async def _worker(app: Duly, dice: random.Random, idle: int = 30) -> None:
    worker, database = uuid.uuid4(), (await app.resources()).database

    async def claim() -> list[claims.ClaimedJob]:
        async with database.engine() as conn:
            await claims.promote_due(conn, limit=10)
            taken = await claims.claim_jobs(
                conn,
                worker_id=worker,
                claim_id=uuid.uuid4(),
                lane="q:default",
                slots=4,
                after_org=uuid.UUID(int=0),
            )
        return taken.jobs

    while idle:
        held = await retry_transaction(claim)
        idle -= not held
        decided = [
            (job, decide(JobState(Status.RUNNING, job.attempt, job.returned), dice.choice(ENDINGS),
                         RetryPolicy(max_attempts=3), datetime.now(UTC), 0.0))
            for job in held
        ]  # fmt: skip

        async def settle(decided: list[Any] = decided) -> set[tuple[uuid.UUID, uuid.UUID, int]]:
            async with database.engine() as conn:
                return await work.settle(conn, decided, actor_type="worker", actor_id=str(worker))

        assert len(await retry_transaction(settle)) == len(held), "no other worker can have claimed them"


async def _canceler(dice: random.Random, known: list[Any]) -> None:
    for _ in range(60):
        await asyncio.wait_for(_something(known), 30)
        try:
            await dice.choice(known).cancel("enough")
        except errors.AlreadyFinished:
            continue


async def _something(known: list[Any]) -> None:
    while not known:
        await asyncio.to_thread(lambda: None)


@pytest.mark.parametrize("seed", range(3))
async def test_all_tables_are_consistent_after_concurrent_changes(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, seed: int
) -> None:
    @app.job("step.take")
    def take(n: int) -> None: ...

    known: list[Any] = []
    dice = [random.Random(seed * 100 + n) for n in range(10)]
    with context(org_id=acting, actor=Actor.user("u1")):
        await asyncio.gather(
            *(_client(take, d, known) for d in dice[:4]),
            *(_worker(app, d) for d in dice[4:7]),
            *(_canceler(d, known) for d in dice[7:]),
        )
    ended = sql.execute("select count(*) from duly.jobs where finished_at is not null").fetchone()
    assert ended
    assert ended[0] > 50, "the storm was one"
    for claim, query in BOOKS.items():
        assert sql.execute(query).fetchall() == [], claim


TAMPERING = {
    "events have gaps, or the state miscounts them": "delete from duly.event_log where event_seq = 2",
    "the last event is not the end, or there are two ends": (
        "update duly.event_log set event_type = 'job.progressed' where event_type = 'job.completed'"
    ),
    "an event is missing in the order of commits, or is there twice": (
        "update duly.event_log set batched = true where event_seq = 2"
    ),
    "a job has a state, and an end of the plain path": (
        "insert into duly.job_ends select org_id, job_id, org_id, updated_at, updated_at, '1', '1', false "
        "from duly.job_states"
    ),
    "a queued job waits nowhere or twice, or another one waits": (
        "insert into duly.ready select 'q:default', org_id, 0, job_id from duly.job_states"
    ),
    "a run identity is held by an ended job, or an active one holds none": (
        "insert into duly.active_runs select org_id, job_type, run_identity_hash, job_id "
        "from duly.job_records"
    ),
    "a result is missing or too many": "delete from duly.result_finals",
    "a job is in no ledger": "delete from duly.key_ledger",
    "a dead letter too few or too many": (
        "update duly.job_states set outcome = 'dead' where status = 'failed'"
    ),
}


@pytest.mark.parametrize("claim", BOOKS)
async def test_tampering_is_detected(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, claim: str
) -> None:
    @app.job("step.take")
    def take(n: int) -> None: ...

    database = (await app.resources()).database
    for ending in (Completed(None), Failed(ERROR)):
        await take.options(idempotency_key=str(ending), run_identity=str(ending)).enqueue(1)
        async with database.engine() as conn:
            [job] = (
                await claims.claim_jobs(
                    conn, worker_id=acting, claim_id=uuid.uuid4(), lane="q:default", slots=1, after_org=acting
                )
            ).jobs
            to = decide(JobState(Status.RUNNING, 1), ending, RetryPolicy(), datetime.now(UTC), 0.0)
            await work.settle(conn, [(job, to)], actor_type="worker", actor_id="w")
    assert sql.execute(BOOKS[claim]).fetchall() == []
    sql.execute(TAMPERING[claim])
    assert sql.execute(BOOKS[claim]).fetchall() != []
