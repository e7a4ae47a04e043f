"""The tables at the end of a run, read into a history."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row, scalar_row, tuple_row

from duly.testing.history.book import Key
from duly.testing.history.looks import CALM, ENTRIES, JOBS, SOME_JOBS
from duly.testing.history.records import History, Sight

Values = Mapping[str, Any] | None
_LARGE = {"payload", "result"}
"""Columns that no promise needs."""
_OF_JOBS = {
    "events": "select * from duly.event_log",
    "results": """
        select org_id, job_id, result_kind, result_seq, chunk_key, payload_ref, created_at
        from duly.result_snapshots""",
    "dead_letters": "select * from duly.dead_letters",
    "alerts": "select org_id, target::uuid as job_id from duly.alerts where kind = 'dead_letter'",
}
_LEDGER = "select * from duly.ledger"
_TABLES = {
    **_OF_JOBS,
    "ledger": _LEDGER,
    "schedules": "select * from duly.schedules",
    "ticks": "select * from duly.schedule_ticks",
    "audit": ENTRIES,
    "seals": "select * from duly.audit_seals",
    "workers": "select * from duly.workers",
}
_CHOSEN = "(org_id, job_id) in (select * from unnest(%(orgs)s::uuid[], %(jobs)s::uuid[]))"
_NAMED = "(org_id, idempotency_key) in (select * from unnest(%(orgs)s::uuid[], %(keys)s::text[]))"
_IDS = {
    "waiting": "select job_id from duly.ready union all select job_id from duly.scheduled",
    "debts": "select job_id from duly.bridge_debts",
}


def export(conn: psycopg.Connection[Any], **recorded: Any) -> History:
    """The history of a run that is over, with what was recorded meanwhile (see `by_field`).

    Reads everything in one snapshot, as a superuser or an operator, on a connection in autocommit mode. The
    last look at every job is one of its sights.
    """
    with conn.transaction():
        conn.execute(CALM)
        tables: dict[str, Any] = {name: _rows(conn, query) for name, query in _TABLES.items()}
        tables["jobs"] = _jobs(conn)
        tables |= {name: _ids(conn, query) for name, query in _IDS.items()}
        last = _last_look(conn)
        [now] = conn.cursor(row_factory=tuple_row).execute("select duly.now()").fetchone() or [None]
    sights = [*recorded.pop("sights", ()), *last]
    return History(**{"ended_at": now, **tables, **recorded, "sights": sights})


def export_jobs(conn: psycopg.Connection[Any], keys: Collection[Key], **recorded: Any) -> History:
    """The same of some jobs alone, by (org_id, job_id): to check a run that goes on, piece by piece.

    Take jobs that have ended. Schedules, workers and the audit trail belong to no job, and are left out.
    """
    chosen = {"orgs": [org_id for org_id, _ in keys], "jobs": [job_id for _, job_id in keys]}
    with conn.transaction():
        conn.execute(CALM)
        tables: dict[str, Any] = {
            name: _rows(conn, f"select * from ({query}) t where {_CHOSEN}", chosen)  # noqa: S608
            for name, query in _OF_JOBS.items()
        }
        tables["jobs"] = jobs = _jobs(conn, f"where {_CHOSEN}", chosen)
        named = {"orgs": [job["org_id"] for job in jobs], "keys": [job["idempotency_key"] for job in jobs]}
        tables["ledger"] = _rows(conn, f"{_LEDGER} where {_NAMED}", named)
        for name, query in _IDS.items():
            tables[name] = _ids(conn, f"select * from ({query}) t where job_id = any (%(jobs)s)", chosen)  # noqa: S608
        last = look_at(conn, keys, "export")
        [now] = conn.cursor(row_factory=tuple_row).execute("select duly.now()").fetchone() or [None]
    sights = [*recorded.pop("sights", ()), *last]
    return History(**{"ended_at": now, **tables, **recorded, "sights": sights})


def look_at(conn: psycopg.Connection[Any], keys: Collection[Key], observer: str) -> list[Sight]:
    """One look at some jobs, as an observer has it."""
    chosen = {"orgs": [org_id for org_id, _ in keys], "jobs": [job_id for _, job_id in keys]}
    return [Sight(observer, *row) for row in conn.cursor(row_factory=tuple_row).execute(SOME_JOBS, chosen)]


def _rows(conn: psycopg.Connection[Any], query: str, values: Values = None) -> list[dict[str, Any]]:
    return conn.cursor(row_factory=dict_row).execute(query, values).fetchall()


def _ids(conn: psycopg.Connection[Any], query: str, values: Values = None) -> list[UUID]:
    return conn.cursor(row_factory=scalar_row).execute(query, values).fetchall()


def _jobs(conn: psycopg.Connection[Any], where: str = "", values: Values = None) -> list[dict[str, Any]]:
    described = conn.execute("select * from duly.jobs limit 0").description or ()
    columns = ", ".join(column.name for column in described if column.name not in _LARGE)
    return _rows(conn, f"select {columns} from duly.jobs {where}", values)  # noqa: S608


def _last_look(conn: psycopg.Connection[Any]) -> list[Sight]:
    values = {"parts": 1, "turn": 0}
    cursor = conn.cursor(row_factory=tuple_row).execute(JOBS, values)
    return [Sight("export", *row) for row in cursor]
