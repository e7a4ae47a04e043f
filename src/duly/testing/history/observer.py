"""Observe jobs, leases and audit entries again and again during a run, and record what changed.

An observer reads every org: connect as an operator or a superuser.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import tuple_row

from duly.testing.history.recorder import Record, Recorder
from duly.testing.history.records import AuditObservation, JobObservation, LeaseObservation

Rows = Sequence[tuple[Any, ...]]
SUBJECTS = ("jobs", "leases", "audit")
_MAX_GAP_SECONDS = 2.0

SNAPSHOT = "set transaction isolation level repeatable read, read only; set local timezone = 'UTC'"
"""First in the transaction of an observation: one snapshot, and times that read the same everywhere."""

_JOBS = """
select r.org_id, r.job_id, coalesce(s.status, 'queued'), coalesce(s.attempt, 0), coalesce(s.event_seq, 1),
       coalesce(s.progress_percent, 0),
       (select count(*) from duly.events_of(r.org_id, r.job_id)),
       case when s.finished_at is not null then md5(r::text || s::text) else '' end
from duly.job_records r
left join lateral (select x.* from duly.state_of(r.org_id, r.job_id) x limit 1) s on true
"""
# Active jobs always; of the ended ones only a part in each turn, so that an observation stays cheap.
JOBS = f"{_JOBS} where s.finished_at is null or get_byte(uuid_send(r.job_id), 15) %% %(parts)s = %(turn)s"
SOME_JOBS = f"""{_JOBS}
where (r.org_id, r.job_id) in (select * from unnest(%(orgs)s::uuid[], %(jobs)s::uuid[]))"""  # noqa: S608

# A lost worker's lease lives on as long as claims name it.
_LEASES = """
select w.worker_id, extract(epoch from duly.now())::float8,
       extract(epoch from duly.now() - w.heartbeat_at - w.lease)::float8, w.lost_at is not null,
       exists (select from duly.claims c where c.worker_id = w.worker_id)
from duly.workers w where w.stopped_at is null
"""

_ENTRY = """md5(concat_ws('|', org_id, entry_id, occurred_at, actor_type, actor_id, action, target_type,
    target_id, coalesce(reason, '-'), coalesce(request_id, '-'), coalesce(correlation_id, '-'), detail))"""
_AUDIT = f"select entry_id::text, {_ENTRY} from duly.audit_entries"  # noqa: S608
AUDIT_ENTRIES = f"select *, {_ENTRY} as digest from duly.audit_entries"  # noqa: S608


class Observer:
    """Records jobs, leases and audit entries that changed since its last observation."""

    def __init__(
        self,
        name: str,
        write: Callable[[Record], None],
        *,
        parts: int = 8,
        subjects: Collection[str] = SUBJECTS,
    ) -> None:
        self.name = name
        self._subjects = subjects
        self._write = write
        self._parts = parts
        self._turn = 0
        self._jobs: dict[UUID, JobObservation] = {}
        self._lost: set[UUID] = set()
        self._entries: dict[str, str] = {}
        self._sweeping_since: float | None = None
        self._observed_at = 0.0

    def observe(self, conn: psycopg.Connection[Any]) -> None:
        """Observe once, in a transaction of its own; the connection is in autocommit mode."""
        with conn.transaction(), conn.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(SNAPSHOT)
            for query, record in self._queries():
                record(cursor.execute(query, self._values).fetchall())
        self._turn = (self._turn + 1) % self._parts

    async def observe_async(self, conn: psycopg.AsyncConnection[Any]) -> None:
        """Observe once on an async connection."""
        async with conn.transaction(), conn.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(SNAPSHOT)
            for query, record in self._queries():
                await cursor.execute(query, self._values)
                record(await cursor.fetchall())
        self._turn = (self._turn + 1) % self._parts

    def interrupted(self) -> None:
        """Restart the clock of expired leases: the database was away, so that no reaper could sweep."""
        self._sweeping_since = None

    @property
    def _values(self) -> dict[str, int]:
        return {"parts": self._parts, "turn": self._turn}

    def _queries(self) -> list[tuple[str, Callable[[Rows], None]]]:
        queries = {
            "jobs": (JOBS, self._record_jobs),
            "leases": (_LEASES, self._record_leases),
            "audit": (_AUDIT, self._record_audit),
        }
        return [queries[subject] for subject in self._subjects]

    def _record_jobs(self, rows: Rows) -> None:
        for row in rows:
            observation = JobObservation(self.name, *row)
            if self._jobs.get(observation.job_id) != observation:
                self._jobs[observation.job_id] = observation
                self._write(observation)

    def _record_leases(self, rows: Rows) -> None:
        """Record expired leases. Time counts only while a living worker could sweep, and we observe it."""
        alive = [now for _, now, expired, lost, _ in rows if expired <= 0 and not lost]
        if not alive:
            self._sweeping_since = None
        elif self._sweeping_since is None or alive[0] - self._observed_at > _MAX_GAP_SECONDS:
            self._sweeping_since = alive[0]
        self._observed_at = alive[0] if alive else self._observed_at
        for worker_id, now, expired, lost, has_claims in rows:
            since = now if self._sweeping_since is None else self._sweeping_since
            survived = min(expired, now - since) if expired > 0 and (has_claims or not lost) else 0.0
            if survived > 0 or (lost and worker_id not in self._lost):
                self._write(LeaseObservation(worker_id, survived, lost))
            if lost:
                self._lost.add(worker_id)

    def _record_audit(self, rows: Rows) -> None:
        for entry_id, digest in rows:
            if self._entries.get(entry_id) != digest:
                self._entries[entry_id] = digest
                self._write(AuditObservation(entry_id, digest))


def watch(
    url: str, path: Path | str, *, name: str, stop: threading.Event | None = None, pause: float = 0.1
) -> None:
    """Observe until stopped, through every outage of the database. For a process or a thread of its own."""
    stop = stop or threading.Event()
    log = Recorder(path)
    observer = Observer(name, log.write)
    while not stop.is_set():
        try:
            with psycopg.connect(url, autocommit=True, connect_timeout=2) as conn:
                while not stop.is_set():
                    observer.observe(conn)
                    stop.wait(pause)
        except psycopg.Error:
            observer.interrupted()
            stop.wait(pause)
    log.close()
