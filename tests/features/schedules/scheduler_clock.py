"""Helpers for tests of schedules: a clock that tests set, a job type, and rounds of the scheduler."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from duly import Actor, Duly
from duly.features.schedules.models import ScheduleSnapshot
from duly.features.schedules.scheduler import Scheduler
from duly.features.schedules.service import Schedules

ADMIN = Actor.user("admin")
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Clock:
    """`duly.now()` of one database, for every session and through every pooler.

    Its body is replaced, because a setting of the database reaches new connections only.
    """

    def __init__(self, sql: psycopg.Connection, at: datetime) -> None:
        self._sql = sql
        self.at = at
        sql.execute("create table duly.test_clock as select %s::timestamptz as at", [at])
        sql.execute("""
            create or replace function duly.now() returns timestamptz language sql stable parallel safe
            security definer return (select c.at from duly.test_clock c)
        """)
        sql.execute("alter function duly.now() owner to current_user")

    def set(self, at: datetime) -> None:
        self._sql.execute("update duly.test_clock set at = %s", [at])
        self.at = at

    def advance(self, by: timedelta) -> None:
        self.set(self.at + by)


def declare(app: Duly) -> None:
    @app.job("house.clean", category="maintenance")
    async def clean(room: str = "hall", depth: int = 1) -> None: ...

    @app.job("house.alarm", schedulable=True)
    def alarm() -> None: ...


async def schedule(app: Duly, org: uuid.UUID, name: str = "nightly", **changes: Any) -> ScheduleSnapshot:
    fields = {"cron": "* * * * *", "job_type": "house.clean", "actor": ADMIN, **changes}
    return await Schedules(app).create(org, name, **fields)


async def catch_up(scheduler: Scheduler) -> timedelta:
    """Run rounds until no tick is due; return the wait after the last one."""
    while not (wait := await scheduler.once()):
        pass
    return wait


def ticks(sql: psycopg.Connection, org: uuid.UUID) -> dict[datetime, str]:
    query = "select tick_at, disposition from duly.schedule_ticks where org_id = %s order by tick_at"
    return {at.astimezone(UTC): disposition for at, disposition in sql.execute(query, [org])}


def count(sql: psycopg.Connection, table: str) -> int:
    row = sql.execute(f"select count(*) from duly.{table}").fetchone()
    assert row
    return int(row[0])


def audited(sql: psycopg.Connection) -> list[tuple[Any, ...]]:
    """Return the audit entries in order."""
    query = "select action, actor_type, actor_id, reason, target_type, target_id from duly.audit_entries"
    return sql.execute(f"{query} order by entry_id").fetchall()
