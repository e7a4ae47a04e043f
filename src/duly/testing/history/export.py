"""Export the tables at the end of a run as a history."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row, scalar_row, tuple_row

from duly.testing.history.checker import Key
from duly.testing.history.observer import AUDIT_ENTRIES, JOBS, SNAPSHOT, SOME_JOBS
from duly.testing.history.records import History, JobObservation

Values = Mapping[str, Any] | None
_OMITTED_COLUMNS = {"payload", "result"}
"""Large columns that no promise needs."""
_JOB_TABLES = {
    "events": """
        select * from (
            select e.* from duly.job_records r cross join lateral duly.events_of(r.org_id, r.job_id) e
        ) e""",
    "results": """
        select org_id, job_id, result_kind, result_seq, chunk_key, payload_ref, created_at
        from duly.all_results""",
    "dead_letters": "select * from duly.dead_letters",
    "alerts": "select org_id, target::uuid as job_id from duly.alerts where kind = 'dead_letter'",
}
_LEDGER = "select * from duly.idempotency_keys"
_TABLES = {
    **_JOB_TABLES,
    "ledger": _LEDGER,
    "schedules": "select * from duly.schedules",
    "ticks": "select * from duly.schedule_ticks",
    "audit": AUDIT_ENTRIES,
    "seals": "select * from duly.audit_seals",
    "workers": "select * from duly.workers",
}
_BY_JOB = "(org_id, job_id) in (select * from unnest(%(orgs)s::uuid[], %(jobs)s::uuid[]))"
_BY_KEY = "(org_id, idempotency_key) in (select * from unnest(%(orgs)s::uuid[], %(keys)s::text[]))"
_IDS = {
    "queued": "select job_id from duly.ready union all select job_id from duly.scheduled",
    "owed_callbacks": "select job_id from duly.bridge_debts",
}


def export(conn: psycopg.Connection[Any], **recorded: Any) -> History:
    """Return the history of a finished run, with what was recorded meanwhile (see `by_field`).

    Reads everything in one snapshot, as a superuser or an operator, on a connection in autocommit mode. The
    final state of every job is one of its observations.
    """
    with conn.transaction():
        conn.execute(SNAPSHOT)
        tables: dict[str, Any] = {name: _rows(conn, query) for name, query in _TABLES.items()}
        tables["jobs"] = _jobs(conn)
        tables |= {name: _ids(conn, query) for name, query in _IDS.items()}
        last = _observe_all(conn)
        [now] = conn.cursor(row_factory=tuple_row).execute("select duly.now()").fetchone() or [None]
    observations = [*recorded.pop("observations", ()), *last]
    return History(**{"ended_at": now, **tables, **recorded, "observations": observations})


def export_jobs(conn: psycopg.Connection[Any], keys: Collection[Key], **recorded: Any) -> History:
    """Return the history of some jobs, by (org_id, job_id): to check a run that goes on, piece by piece.

    Pass jobs that have ended. Schedules, workers and the audit log belong to no job and are left out.
    """
    values = {"orgs": [org_id for org_id, _ in keys], "jobs": [job_id for _, job_id in keys]}
    with conn.transaction():
        conn.execute(SNAPSHOT)
        tables: dict[str, Any] = {
            name: _rows(conn, f"select * from ({query}) t where {_BY_JOB}", values)  # noqa: S608
            for name, query in _JOB_TABLES.items()
        }
        tables["jobs"] = jobs = _jobs(conn, f"where {_BY_JOB}", values)
        by_key = {"orgs": [job["org_id"] for job in jobs], "keys": [job["idempotency_key"] for job in jobs]}
        tables["ledger"] = _rows(conn, f"{_LEDGER} where {_BY_KEY}", by_key)
        for name, query in _IDS.items():
            tables[name] = _ids(conn, f"select * from ({query}) t where job_id = any (%(jobs)s)", values)  # noqa: S608
        last = observe_jobs(conn, keys, "export")
        [now] = conn.cursor(row_factory=tuple_row).execute("select duly.now()").fetchone() or [None]
    observations = [*recorded.pop("observations", ()), *last]
    return History(**{"ended_at": now, **tables, **recorded, "observations": observations})


def observe_jobs(conn: psycopg.Connection[Any], keys: Collection[Key], observer: str) -> list[JobObservation]:
    """Observe some jobs once."""
    values = {"orgs": [org_id for org_id, _ in keys], "jobs": [job_id for _, job_id in keys]}
    return [
        JobObservation(observer, *row)
        for row in conn.cursor(row_factory=tuple_row).execute(SOME_JOBS, values)
    ]


def _rows(conn: psycopg.Connection[Any], query: str, values: Values = None) -> list[dict[str, Any]]:
    return conn.cursor(row_factory=dict_row).execute(query, values).fetchall()


def _ids(conn: psycopg.Connection[Any], query: str, values: Values = None) -> list[UUID]:
    return conn.cursor(row_factory=scalar_row).execute(query, values).fetchall()


def _jobs(conn: psycopg.Connection[Any], where: str = "", values: Values = None) -> list[dict[str, Any]]:
    columns = conn.execute("select * from duly.jobs limit 0").description or ()
    names = ", ".join(column.name for column in columns if column.name not in _OMITTED_COLUMNS)
    return _rows(conn, f"select {names} from duly.jobs {where}", values)  # noqa: S608


def _observe_all(conn: psycopg.Connection[Any]) -> list[JobObservation]:
    values = {"parts": 1, "turn": 0}
    cursor = conn.cursor(row_factory=tuple_row).execute(JOBS, values)
    return [JobObservation("export", *row) for row in cursor]
