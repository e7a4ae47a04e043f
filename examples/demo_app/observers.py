"""Observations that ended jobs do not show: leases and schedule ticks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from duly.testing.history import History, Observer

from .customers import ORGS

_SCHEDULES = "select * from duly.schedules where org_id = any (%s) and last_tick_at is not null"
_TICKS = "select * from duly.schedule_ticks where schedule_id = %s and tick_at > %s and tick_at <= %s"
_CHANGES = """
select * from duly.audit_entries where org_id = any (%s) and occurred_at > %s and action = 'schedule.updated'
order by occurred_at desc limit 100"""
_TICKED = """
select org_id, job_id, idempotency_key, metadata, status from duly.jobs
where (org_id, job_id) in (select * from unnest(%s::uuid[], %s::uuid[]))"""


class Leases:
    """Expired leases and lost workers; each is checked once."""

    def __init__(self) -> None:
        self._judged: set[UUID] = set()
        self._observations: list[Any] = []
        self._observer = Observer("the checker", self._observations.append, subjects=("leases",))

    def look(self, conn: psycopg.Connection[Any]) -> History:
        """Return what is new."""
        self._observer.observe(conn)
        lost = "select * from duly.workers where lost_at is not null order by lost_at desc limit 100"
        rows = conn.cursor(row_factory=dict_row).execute(lost).fetchall()
        new = [row for row in rows if row["worker_id"] not in self._judged]
        self._judged |= {row["worker_id"] for row in new}
        observations, self._observations[:] = list(self._observations), []
        return History(leases=observations, workers=new)


class Ticks:
    """Every schedule tick since the last check."""

    def __init__(self) -> None:
        self._began = datetime.now(UTC)
        self._until: dict[UUID, datetime] = {}

    def look(self, conn: psycopg.Connection[Any]) -> History:
        """Return what is new: the schedules as if they had been created at the last check."""
        cursor = conn.cursor(row_factory=dict_row)
        orgs = [org.org_id for org in ORGS]
        schedules, ticks = [], []
        for row in cursor.execute(_SCHEDULES, [orgs]).fetchall():
            schedule_id, until = row["schedule_id"], row["last_tick_at"]
            since = self._until.get(schedule_id, max(row["created_at"], self._began))
            if until > since:
                schedules.append({**row, "created_at": since})
                ticks += cursor.execute(_TICKS, [schedule_id, since, until]).fetchall()
                self._until[schedule_id] = until
        run = [row for row in ticks if row["job_id"] is not None]
        jobs = cursor.execute(_TICKED, [[r["org_id"] for r in run], [r["job_id"] for r in run]]).fetchall()
        changes = cursor.execute(_CHANGES, [orgs, self._began]).fetchall()
        return History(schedules=schedules, ticks=ticks, jobs=jobs, audit=changes)
