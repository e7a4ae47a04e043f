"""An observer: looks again and again while everything happens, and writes down what it saw."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import tuple_row

from duly.testing.history.looks import AUDIT, CALM, JOBS, LEASES
from duly.testing.history.recorder import Record, Recorder
from duly.testing.history.records import AuditSight, LeaseSight, Sight

Rows = Sequence[tuple[Any, ...]]
SEES = ("jobs", "leases", "audit")
_GAP = 2.0


class Observer:
    """Sees jobs, leases and the audit trail. What has not changed since its last look it does not repeat."""

    def __init__(
        self, name: str, write: Callable[[Record], None], *, parts: int = 8, sees: Collection[str] = SEES
    ) -> None:
        self.name = name
        self._sees = sees
        self._write = write
        self._parts = parts
        self._turn = 0
        self._seen: dict[UUID, Sight] = {}
        self._lost: set[UUID] = set()
        self._entries: dict[str, str] = {}
        self._sweeping_since: float | None = None
        self._looked_at = 0.0

    def look(self, conn: psycopg.Connection[Any]) -> None:
        """Look once, in a transaction of its own; the connection is in autocommit mode."""
        with conn.transaction(), conn.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(CALM)
            for query, note in self._questions():
                note(cursor.execute(query, self._values).fetchall())
        self._turn = (self._turn + 1) % self._parts

    async def look_async(self, conn: psycopg.AsyncConnection[Any]) -> None:
        """The same on an async connection."""
        async with conn.transaction(), conn.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(CALM)
            for query, note in self._questions():
                await cursor.execute(query, self._values)
                note(await cursor.fetchall())
        self._turn = (self._turn + 1) % self._parts

    def interrupted(self) -> None:
        """The database was away: nobody could have swept."""
        self._sweeping_since = None

    @property
    def _values(self) -> dict[str, int]:
        return {"parts": self._parts, "turn": self._turn}

    def _questions(self) -> list[tuple[str, Callable[[Rows], None]]]:
        known = {
            "jobs": (JOBS, self._note_jobs),
            "leases": (LEASES, self._note_leases),
            "audit": (AUDIT, self._note_audit),
        }
        return [known[name] for name in self._sees]

    def _note_jobs(self, rows: Rows) -> None:
        for row in rows:
            sight = Sight(self.name, *row)
            if self._seen.get(sight.job_id) != sight:
                self._seen[sight.job_id] = sight
                self._write(sight)

    def _note_leases(self, rows: Rows) -> None:
        """Time counts only while somebody is alive who sweeps, and we are there to see it."""
        alive = [now for _, now, expired, lost, _ in rows if expired <= 0 and not lost]
        if not alive:
            self._sweeping_since = None
        elif self._sweeping_since is None or alive[0] - self._looked_at > _GAP:
            self._sweeping_since = alive[0]
        self._looked_at = alive[0] if alive else self._looked_at
        for worker_id, now, expired, lost, holds in rows:
            since = now if self._sweeping_since is None else self._sweeping_since
            survived = min(expired, now - since) if expired > 0 and (holds or not lost) else 0.0
            if survived > 0 or (lost and worker_id not in self._lost):
                self._write(LeaseSight(worker_id, survived, lost))
            if lost:
                self._lost.add(worker_id)

    def _note_audit(self, rows: Rows) -> None:
        for entry_id, digest in rows:
            if self._entries.get(entry_id) != digest:
                self._entries[entry_id] = digest
                self._write(AuditSight(entry_id, digest))


def watch(
    url: str, path: Path | str, *, name: str, stop: threading.Event | None = None, pause: float = 0.1
) -> None:
    """Look until told to stop, through every outage of the database. For a process or a thread of its own."""
    stop = stop or threading.Event()
    log = Recorder(path)
    observer = Observer(name, log.write)
    while not stop.is_set():
        try:
            with psycopg.connect(url, autocommit=True, connect_timeout=2) as conn:
                while not stop.is_set():
                    observer.look(conn)
                    stop.wait(pause)
        except psycopg.Error:
            observer.interrupted()
            stop.wait(pause)
    log.close()
