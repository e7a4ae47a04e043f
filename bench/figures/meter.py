"""A meter of what work costs: CPU time of this process and of the server, and bytes of WAL.

A busy machine makes the wall clock lie; CPU time, as the scheduler counts it, does not. The images of whole
pages, which the first change of a page after a checkpoint writes, are the part of the WAL that depends on the
time between checkpoints.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psycopg
from peers.processes import TICKS, stat, tree

_WAL = """
select (%(end)s::pg_lsn - %(start)s::pg_lsn)::bigint, coalesce(sum(fpi_size), 0)::bigint
from pg_get_wal_stats(%(start)s::pg_lsn, %(end)s::pg_lsn)
"""
_TABLE_BYTES = """
select coalesce(p.relname, c.relname)::text, sum(pg_total_relation_size(c.oid))::bigint,
       sum(pg_indexes_size(c.oid))::bigint
from pg_class c
left join pg_inherits i on i.inhrelid = c.oid left join pg_class p on p.oid = i.inhparent
where c.relnamespace = 'duly'::regnamespace and c.relkind = 'r' group by 1
"""


class Cost(NamedTuple):
    """What one step costs for one job: microseconds of CPU, and bytes."""

    client: float
    server: float
    wal: float
    images: float = 0.0
    """The part of the WAL that is images of whole pages."""


class _Reading(NamedTuple):
    client: float
    server: float
    lsn: str


class Meter:
    """Reads CPU time of this process and of the server, and the WAL position."""

    def __init__(self, url: str) -> None:
        self._conn = psycopg.connect(url, autocommit=True)
        self._conn.execute("create extension if not exists pg_walinspect schema public")
        row = self._conn.execute("show data_directory").fetchone()
        assert row
        self._postmaster = int(Path(row[0], "postmaster.pid").read_text().split()[0])
        self._start = self._read()

    def start(self) -> None:
        """Begin to count."""
        self._start = self._read()

    def cost(self, jobs: int, client: float | None = None) -> Cost:
        """Return the cost since the start, for one job; `client` is the CPU time of another process."""
        before, now = self._start, self._read()
        row = self._conn.execute(_WAL, {"start": before.lsn, "end": now.lsn}).fetchone()
        assert row
        used = now.client - before.client if client is None else client
        return Cost(used / jobs, (now.server - before.server) / jobs, row[0] / jobs, row[1] / jobs)

    def checkpoint(self, *, vacuum: bool = True) -> None:
        """Write a checkpoint now, so that none falls into a measurement."""
        if vacuum:
            self._conn.execute("vacuum analyze")
        self._conn.execute("checkpoint")

    def table_bytes(self) -> dict[str, tuple[int, int]]:
        """Return the bytes of each table and of its indexes alone; partitions count for their parent."""
        return {name: (total, indexes) for name, total, indexes in self._conn.execute(_TABLE_BYTES)}

    def size(self) -> int:
        """Return the bytes of all tables with their indexes."""
        return sum(total for total, _ in self.table_bytes().values())

    def close(self) -> None:
        """Close the connection."""
        self._conn.close()

    def _read(self) -> _Reading:
        # Even a step that writes nothing has a record between its start and its end.
        self._conn.execute("select pg_logical_emit_message(true, 'bench', '')")
        row = self._conn.execute("select pg_current_wal_flush_lsn()::text").fetchone()
        assert row
        return _Reading(time.process_time() * 1e6, self._server_microseconds(), row[0])

    def _server_microseconds(self) -> float:
        """Return the CPU time of all processes of the server, also of those that have exited."""
        nanoseconds = 0
        for pid in tree(self._postmaster):
            with suppress(OSError):
                nanoseconds += int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
        exited = sum(map(int, stat(self._postmaster)[13:15]))
        return nanoseconds / 1000 + exited / TICKS * 1e6
