"""A sample of the database."""

from __future__ import annotations

from typing import Any, NamedTuple

import psycopg

HOT = ("ready", "scheduled", "claims", "workers")
"""Tables whose rows come and go: they should stay small."""
GROWING = (
    "job_states",
    "job_ends",
    "event_batches",
    "job_records",
    "event_log",
    "result_snapshots",
    "key_ledger",
)
"""Tables that grow with the jobs: the bytes per job should stay constant."""

# Including all partitions and TOAST.
_TABLES = """
select t.name, sum(pg_total_relation_size(p.oid))::bigint as bytes,
       sum(pg_stat_get_dead_tuples(p.oid) + coalesce(pg_stat_get_dead_tuples(p.toast), 0))::bigint as dead,
       sum(pg_stat_get_autovacuum_count(p.oid) + coalesce(pg_stat_get_autovacuum_count(p.toast), 0))::bigint
           as vacuums,
       sum(pg_stat_get_tuples_hot_updated(p.oid))::real / greatest(sum(pg_stat_get_tuples_updated(p.oid)), 1)
           as heap_only
from unnest(%(names)s::text[]) t(name)
cross join lateral (
    select c.oid, nullif(c.reltoastrelid, 0) as toast from pg_class c
    where c.oid = ('duly.' || t.name)::regclass
       or c.oid in (select x.relid from pg_partition_tree(('duly.' || t.name)::regclass) x)) p
where p.oid not in (select relid from pg_partition_tree(('duly.' || t.name)::regclass) where not isleaf)
group by t.name
"""
_REST = """
select (select count(*) from duly.ready) as backlog, (pg_current_wal_lsn() - '0/0')::bigint as wal
"""


class Table(NamedTuple):
    """One table with all its partitions and indexes."""

    bytes: int
    dead: int
    vacuums: int
    heap_only: float
    """The share of heap-only updates."""


class Look(NamedTuple):
    """A sample of all tables."""

    tables: dict[str, Table]
    backlog: int
    wal: int


def look(conn: psycopg.Connection[Any]) -> Look:
    """Read sizes, dead rows and autovacuums of every table, the backlog, and the WAL position."""
    rows = conn.execute(_TABLES, {"names": [*HOT, *GROWING]}).fetchall()
    rest = conn.execute(_REST).fetchone()
    assert rest
    return Look({name: Table(*row) for name, *row in rows}, *rest)
