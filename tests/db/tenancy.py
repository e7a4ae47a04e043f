"""A row for every tenant table, and a check that no org can read or write rows of another."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
from psycopg import sql

Row = dict[str, Any]
Conn = psycopg.Connection[tuple[Any, ...]]

_JOB = "019c0000-0000-7000-8000-000000000001"
_SAME = "5eed0000-0000-4000-8000-000000000001"
_AT = "2026-06-01T00:00:00Z"

# The same ids in every org: a unique constraint without the org would fail here.
ROWS: dict[str, Callable[[], Row]] = {
    "organizations": lambda: {"name": "Acme"},
    "projects": lambda: {"project_id": _SAME, "name": "Berlin"},
    "members": lambda: {"user_id": "u1", "role": "viewer"},
    "api_keys": lambda: {
        "key_id": "k1", "name": "ci", "environment": "test", "secret_hash": b"x", "scopes": ["jobs:read"],
        "created_by": "u1",
    },
    "sessions": lambda: {"session_hash": b"x", "key_id": "k1", "expires_at": _AT},
    "job_records": lambda: {
        "job_id": _JOB, "result_id": _SAME, "job_type": "t", "category": "default", "queue": "q:default",
        "priority": 0, "max_attempts": 5, "actor_type": "user", "actor_id": "u1", "request_id": "r",
        "correlation_id": "r",
        "idempotency_key": "k", "payload": "{}", "payload_hash": "h", "policy": "{}", "run_at": _AT,
        "created_at": _AT,
    },
    "job_states": lambda: {
        "job_id": _JOB, "status": "running", "outcome": "pending", "run_at": _AT, "updated_at": _AT
    },
    "gates": lambda: {"job_type": "t"},
    "retry_budgets": lambda: {"dependency": "mail", "spent_until": _AT},
    "ready": lambda: {"queue": "q:default", "rank": 0, "job_id": _JOB},
    "scheduled": lambda: {"run_at": _AT, "job_id": _JOB, "queue": "q:default", "rank": 0},
    "active_runs": lambda: {"job_type": "t", "run_identity_hash": "h", "job_id": _JOB},
    "ledger": lambda: {
        "idempotency_key": "k", "job_id": _JOB, "first_seen_at": _AT, "last_seen_at": _AT, "expires_at": _AT
    },
    "key_ledger": lambda: {"key_hash": b"k", "job_id": _JOB, "first_seen_at": _AT, "expires_at": _AT},
    "event_log": lambda: {
        "job_id": _JOB, "event_seq": 1, "event_type": "job.queued", "status": "queued", "attempt": 0,
        "occurred_at": _AT, "actor_type": "user", "actor_id": "u1",
    },
    "job_ends": lambda: {
        "job_id": _JOB, "worker_id": _SAME, "started_at": _AT, "finished_at": _AT,
        "start_xid": "1", "has_result": False,
    },
    "event_batches": lambda: {
        "occurred_at": _AT, "event_type": "job.started", "event_seq": 2, "first_job": _JOB, "job_count": 1,
        "job_ids": [_JOB],
    },
    "result_snapshots": lambda: {
        "job_id": _JOB, "result_kind": "final", "result_seq": 1, "payload": "{}", "created_at": _AT
    },
    "dead_letters": lambda: {
        "job_id": _JOB, "job_type": "t", "queue": "q:default", "attempts": 5, "fingerprint": "f",
        "error_code": "e",
        "error_class": "E", "error_message": "m", "dead_at": _AT,
    },
    "bridge_debts": lambda: {"job_id": _JOB, "job_type": "t", "owed_at": _AT, "due_at": _AT},
    "artifacts": lambda: {
        "artifact_id": _SAME, "job_id": _JOB, "name": "a.csv", "content_type": "text/csv", "blob_ref": "b",
        "sha256": "s", "size": 1,
    },
    "schedules": lambda: {
        "schedule_id": _SAME, "name": "nightly", "cron": "0 3 * * *", "job_type": "t",
        "created_by": "u1",
    },
    "schedule_ticks": lambda: {"schedule_id": _SAME, "tick_at": _AT, "disposition": "missed"},
    "audit_entries": lambda: {
        "entry_id": _SAME, "occurred_at": _AT, "actor_type": "user", "actor_id": "u1", "action": "a",
        "target_type": "job", "target_id": "1",
    },
    "audit_seals": lambda: {
        "seal_seq": 1, "last_occurred_at": _AT, "last_entry_id": _SAME, "entry_count": 1,
        "previous_hash": b"", "hash": b"x", "sealed_at": _AT,
        "version": 1, "last_commit_xid": "7", "entry_ids": [uuid.UUID(_SAME)], "digests": [b"x"],
    },
    "job_logs": lambda: {
        "job_id": _JOB, "attempt": 1, "line_seq": 1, "logged_at": _AT, "level": "info", "message": "m"
    },
    "webhook_endpoints": lambda: {
        "endpoint_id": _SAME, "url": "https://example.com", "event_types": ["*"], "created_by": "u1"
    },
    "webhook_secrets": lambda: {"endpoint_id": _SAME, "secret_id": _SAME, "secret": "s"},
    "webhook_deliveries": lambda: {
        "endpoint_id": _SAME, "job_id": _JOB, "event_seq": 1, "event_type": "job.completed", "due_at": _AT
    },
    "subscriptions": lambda: {
        "subscription_id": _SAME, "job_id": _JOB, "outcomes": ["completed"], "channel": "in_app",
        "recipient": "u1", "locale": "en", "created_by": "u1",
    },
    "notification_templates": lambda: {
        "template_key": "t", "locale": "en", "subject": "s", "body": "b", "updated_by": "u1"
    },
    "notifications": lambda: {
        "notification_id": _SAME, "channel": "in_app", "recipient": "u1", "template_key": "t", "locale": "en",
        "payload": "{}", "payload_hash": "h", "schedule_bucket": "", "scheduled_at": _AT, "created_by": "u1",
    },
    "notification_preferences": lambda: {
        "channel": "in_app", "recipient": "u1", "wanted": True, "updated_by": "u1"
    },
    "notification_suppressions": lambda: {
        "channel": "in_app", "recipient": "u1", "reason": "left", "created_by": "u1"
    },
    "alerts": lambda: {
        "alert_id": _SAME, "kind": "k", "target": "t", "severity": "warning", "summary": "s"
    },
}  # fmt: skip


def insert(conn: Conn, table: str, org: uuid.UUID, **changes: Any) -> None:
    row = {"org_id": org, **ROWS[table](), **changes}
    query = sql.SQL("insert into duly.{} ({}) values ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, row)),
        sql.SQL(", ").join(sql.Placeholder() * len(row)),
    )
    conn.execute(query, list(row.values()))


def insert_all_rows(conn: Conn, *orgs: uuid.UUID) -> None:
    """Insert one row per table and org, and grant every privilege, so that only policies protect the rows."""
    for org in orgs:
        for table in ROWS:
            insert(conn, table, org)
    conn.execute("grant select, insert, update, delete on all tables in schema duly to duly_tenant")
    conn.execute("grant select on duly.api_keys to duly_operator")


def find_isolation_gaps(conn: Conn, mine: uuid.UUID, theirs: uuid.UUID, *tables: str) -> Iterator[str]:
    """Yield every gap in the isolation of two orgs: reads by each role, and writes by the tenant."""
    for table in tables:
        counts = {
            "mine": _count(conn, "duly_tenant", table, mine, mine),
            "theirs": _count(conn, "duly_tenant", table, mine, theirs),
            "without an org": _count(conn, "duly_tenant", table, None, mine),
            "the engine's": _count(conn, "duly_engine", table, None, theirs),
            "the operator's": _count(conn, "duly_operator", table, None, theirs),
            "the owner's": _count(conn, "duly_owner", table, None, theirs),
        }
        expected = {
            "mine": 1, "theirs": 0, "without an org": 0,
            "the engine's": 1, "the operator's": 1, "the owner's": 0,
        }  # fmt: skip
        if table == "audit_entries":
            for org, visible in ((mine, 1), (theirs, 0)):
                counts[f"the auditor of {org}"] = _count(conn, "duly_auditor", table, mine, org)
                expected[f"the auditor of {org}"] = visible
        yield from (f"{table}: {reader} sees {n}" for reader, n in counts.items() if n != expected[reader])
        yield from _writes(conn, table, mine, theirs)


def _writes(conn: Conn, table: str, mine: uuid.UUID, theirs: uuid.UUID) -> Iterator[str]:
    for verb, query in {
        "update": f"update duly.{table} set org_id = org_id where org_id = %s",
        "delete": f"delete from duly.{table} where org_id = %s",
    }.items():
        if _reaches(conn, query, mine, theirs):
            yield f"{table}: {verb} reaches another org"
    if not _refused(conn, table, mine, lambda: insert(conn, table, theirs)):
        yield f"{table}: insert into another org"
    move = f"update duly.{table} set org_id = %s where org_id = %s"
    if not _refused(conn, table, mine, lambda: conn.execute(move, [theirs, mine])):
        yield f"{table}: a row moves to another org"


def _reaches(conn: Conn, query: str, mine: uuid.UUID, theirs: uuid.UUID) -> bool:
    try:
        with _as(conn, "duly_tenant", mine):
            return conn.execute(query, [theirs]).rowcount > 0
    except psycopg.IntegrityError:
        return True


def _refused(conn: Conn, table: str, org: uuid.UUID, write: Callable[[], object]) -> bool:
    try:
        with _as(conn, "duly_tenant", org):
            write()
    except psycopg.errors.InsufficientPrivilege:
        return True
    except psycopg.IntegrityError:
        return False  # a constraint error reveals rows of the other org
    return False


def _count(conn: Conn, role: str, table: str, session_org: uuid.UUID | None, org: uuid.UUID) -> int:
    with _as(conn, role, session_org):
        row = conn.execute(f"select count(*) from duly.{table} where org_id = %s", [org]).fetchone()
    assert row
    return int(row[0])


class _as:  # noqa: N801
    """Run statements as a role of an org, in a savepoint that is rolled back."""

    def __init__(self, conn: Conn, role: str, org: uuid.UUID | None) -> None:
        self.conn, self.role, self.org = conn, role, org

    def __enter__(self) -> None:
        self.savepoint = self.conn.transaction(force_rollback=True)
        self.savepoint.__enter__()
        self.conn.execute(f"set local role {self.role}")
        self.conn.execute("select set_config('duly.org_id', %s, true)", [str(self.org or "")])

    def __exit__(self, *error: Any) -> None:
        self.savepoint.__exit__(*error)
