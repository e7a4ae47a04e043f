"""Create old jobs, with a row in every table, in the partitions of their time."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg

from tests.db.tenancy import insert

Conn = psycopg.Connection[Any]

LONG_AGO = "2024-01-17T09:00:00Z"
"""Older than any retention; a Wednesday in the middle of its month."""

ENDINGS: dict[str, dict[str, Any]] = {
    "completed": {"outcome": "succeeded", "progress_percent": 100},
    "failed": {"outcome": "failed", "error_code": "boom", "error_message": "it broke", "retryable": False},
    "dead": {
        "status": "failed", "outcome": "dead", "error_code": "boom", "error_message": "it broke",
        "retryable": True,
    },
    "canceled": {"outcome": "canceled", "canceled_by": "user", "cancel_reason": "enough"},
}  # fmt: skip


def make_partitions(sql: Conn, at: str = LONG_AGO) -> None:
    """The partitions there would be if this had been installed then."""
    with sql.transaction():
        sql.execute("select set_config('duly.now', %s, true)", [at])
        sql.execute("select duly.ensure_partitions()")


def job_id(sql: Conn, at: str = LONG_AGO) -> uuid.UUID:
    """An id of that moment; another one each time."""
    query = "select overlay(duly.uuid7()::text placing left(duly.uuid7_floor(%s)::text, 13) from 1)::uuid"
    return one(sql, query, at)


def one(sql: Conn, query: str, *values: Any) -> Any:
    row = sql.execute(query, values).fetchone()
    assert row
    return row[0]


def record(sql: Conn, org: uuid.UUID, at: str = LONG_AGO, **changes: Any) -> uuid.UUID:
    """A job that was enqueued then, and nothing more."""
    job = changes.pop("job_id", None) or job_id(sql, at)
    made = {"job_id": job, "result_id": uuid.uuid4(), "idempotency_key": str(job), "created_at": at}
    insert(sql, "job_records", org, **{**made, **changes})
    return job


def ended(
    sql: Conn, org: uuid.UUID, at: str = LONG_AGO, *, how: str = "completed", ended_at: str | None = None
) -> uuid.UUID:
    """A job that was enqueued then and has ended, with its history."""
    job, finished_at = record(sql, org, at), ended_at or at
    insert(
        sql, "job_states", org, **{"job_id": job, "status": how, "finished_at": finished_at, **ENDINGS[how]}
    )
    insert(sql, "event_log", org, job_id=job, occurred_at=finished_at)
    insert(sql, "job_logs", org, job_id=job, logged_at=finished_at)
    insert(sql, "webhook_deliveries", org, job_id=job, created_at=finished_at)
    for kind in ("partial", "final"):
        insert(sql, "result_snapshots", org, job_id=job, result_kind=kind, created_at=finished_at)
    return job


def ended_plain(sql: Conn, org: uuid.UUID, at: str = LONG_AGO, *, ended_at: str | None = None) -> uuid.UUID:
    """A job that was enqueued then and was completed on the plain path."""
    job = record(sql, org, at)
    insert(sql, "job_ends", org, job_id=job, started_at=at, finished_at=ended_at or at)
    return job


def claim_plain(sql: Conn, org: uuid.UUID, job: uuid.UUID) -> None:
    """Let a worker hold a job on the plain path."""
    sql.execute(
        """insert into duly.claims
           (claim_id, worker_id, claimed_at, org_ids, job_ids, plain, low, high, commit_xid)
           values (gen_random_uuid(), gen_random_uuid(), now(), array[%s], array[%s], true, %s, %s, '1')""",
        [org, job, job, job],
    )


def partitions(sql: Conn, parent: str) -> list[str]:
    """The partitions of a table that are older than any retention."""
    query = (
        "select partition from duly.partitions where parent = %s and ends_at < '2024-12-31' order by ends_at"
    )
    return [name for (name,) in sql.execute(query, [parent])]


def drop(sql: Conn, parent: str, keep: str = "30 days", now: str | None = None) -> list[tuple[Any, ...]]:
    """What the engine's call answers: partition and outcome."""
    with sql.transaction():
        sql.execute("select set_config('duly.now', %s, true)", [now or ""])
        sql.execute("set local role duly_engine")
        query = "select partition, outcome from duly.drop_expired_partitions(%s, %s)"
        return sql.execute(query, [parent, keep]).fetchall()


def why(sql: Conn, parent: str) -> str:
    """What keeps the first partition of January."""
    query = "select why from duly.drop_expired_partitions(%s, '30 days') where outcome <> 'dropped'"
    with sql.transaction(force_rollback=True):
        return str(one(sql, query, parent))


def everything(sql: Conn, *but: str) -> dict[str, list[Any]]:
    """All rows of all tables."""
    query = """
        select relname from pg_class where relnamespace = 'duly'::regnamespace and relkind in ('r', 'p')
        and not relispartition order by 1
    """
    tables = [name for (name,) in sql.execute(query) if name not in but]
    return {t: sorted(map(str, sql.execute(f"select * from duly.{t}"))) for t in tables}
