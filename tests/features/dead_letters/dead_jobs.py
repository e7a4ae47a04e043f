"""Create dead letters, and read what their resolution wrote."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import psycopg

from duly import Actor, Status
from duly.core.decide import JobState, decide
from duly.core.outcome import AttemptOutcome, ErrorInfo
from duly.core.policy import RetryPolicy
from duly.db.database import Database
from duly.features.dead_letters.service import DeadLetters
from duly.worker import claim as claims
from duly.worker import settle_store as work

OPS = Actor.user("ops-1")
WORKER = uuid.uuid4()
BOOM = ErrorInfo("boom", "it broke", "ValueError", {"exceptions": []})
WHY = "the provider is back"

Bury = Callable[..., Awaitable[uuid.UUID]]

ACTIONS: dict[str, Callable[[DeadLetters, uuid.UUID, uuid.UUID], Awaitable[Any]]] = {
    "replayed": lambda dead_letters, org, job: dead_letters.replay(org, job, OPS, WHY),
    "fixed": lambda dead_letters, org, job: dead_letters.fix(org, job, {"to": "b"}, OPS, WHY),
    "discarded": lambda dead_letters, org, job: dead_letters.discard(org, job, OPS, WHY),
}


async def end_one(database: Database, ending: AttemptOutcome, *, attempts: int = 1) -> uuid.UUID:
    """Claim the next job and end its attempt with this outcome, as a worker does."""
    now = datetime.now(UTC)  # before the transaction begins, so that what is due is due in it
    async with database.engine() as conn:
        [job] = (
            await claims.claim_jobs(
                conn,
                worker_id=WORKER,
                claim_id=uuid.uuid4(),
                lane="q:default",
                slots=1,
                after_org=uuid.UUID(int=0),
            )
        ).jobs
        policy = RetryPolicy(max_attempts=attempts)
        decision = decide(JobState(Status.RUNNING, job.attempt), ending, policy, now, 0.0)
        settled = await work.settle(conn, [(job, decision)], actor_type="worker", actor_id=str(WORKER))
        assert len(settled) == 1
    return job.job_id


def clone_letter(sql: psycopg.Connection, job_id: uuid.UUID, copies: int) -> None:
    """Create copies of a dead job."""
    ids = [uuid.UUID(int=job_id.int + n) for n in range(1, copies + 1)]
    names = {
        "job_records": "result_id job_type category queue priority max_attempts actor_type actor_id "
        "request_id correlation_id payload payload_hash policy policy_hash run_at created_at",
        "job_states": "status outcome attempt event_seq run_at finished_at updated_at retryable error_code "
        "error_message",
        "dead_letters": "job_type queue attempts fingerprint error_code error_class error_message dead_at",
    }
    for table, columns in names.items():
        names = ", ".join(columns.split())
        key, value = (", idempotency_key", ", i::text") if table == "job_records" else ("", "")
        sql.execute(
            f"insert into duly.{table} (org_id, job_id, {names}{key}) select org_id, i, {names}{value} "
            f"from duly.{table}, unnest(%s::uuid[]) i where job_id = %s",
            [ids, job_id],
        )


def history(sql: psycopg.Connection, job_id: uuid.UUID) -> list[str]:
    rows = sql.execute(
        "select event_seq, event_type from duly.job_events where job_id = %s order by event_seq", [job_id]
    ).fetchall()
    assert [seq for seq, _ in rows] == list(range(1, len(rows) + 1))
    return [event for _, event in rows]


def audited(sql: psycopg.Connection) -> list[tuple[Any, ...]]:
    return sql.execute(
        """select action, actor_id, target_type, target_id, reason, request_id, correlation_id,
                  detail ->> 'successor_job_id'
           from duly.audit_entries order by occurred_at, entry_id"""
    ).fetchall()


def dump_resolution_rows(sql: psycopg.Connection) -> list[Any]:
    """Return every row that a resolution could change."""
    jobs = "job_records job_states event_log event_batches key_ledger ready scheduled active_runs"
    tables = [*jobs.split(), "dead_letters", "audit_entries"]
    return [sql.execute(f"select * from duly.{t} order by 1, 2, 3").fetchall() for t in tables]


async def wait_for_lock_waiter(sql: psycopg.Connection) -> None:
    """Wait until a session of this database waits for a lock."""
    query = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    while not await asyncio.to_thread(lambda: sql.execute(query).fetchone()):
        pass
