"""Schedules and their ticks.

A tick is recorded once, with its job or as missed, by whoever holds the lock of its schedule.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from pydantic import AfterValidator, BaseModel, ConfigDict

from duly.core.errors import ContractError
from duly.core.states import Outcome, Status
from duly.db.pool import Connection
from duly.db.statements import statement
from duly.features.schedules.cron import Cron, Disposition, Missed

# In UTC, whatever the session's zone: in the hour of a fold, moments of two zones are never equal.
Instant = Annotated[datetime, AfterValidator(lambda at: at.astimezone(UTC))]
LATEST = datetime.max.replace(tzinfo=UTC)


class ScheduleSnapshot(BaseModel):
    """One schedule as it is now."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    schedule_id: UUID
    name: str
    cron: str
    timezone: str
    job_type: str
    payload: dict[str, Any]
    missed_policy: Missed
    project_id: UUID | None
    next_tick_at: Instant | None
    last_tick_at: Instant | None
    counted_until: Instant
    """Every tick up to here is recorded, and none after it."""
    paused_at: Instant | None
    paused_by: str | None
    pause_reason: str | None
    retry_at: Instant | None
    last_error: str | None
    """Why it could not be served, if so; it is tried again at `retry_at`."""
    created_by: str
    created_at: Instant
    updated_at: Instant
    read_at: Instant
    """The database's time of this reading."""

    @property
    def key(self) -> dict[str, UUID]:
        """What its row is found by."""
        return {"org_id": self.org_id, "schedule_id": self.schedule_id}

    @property
    def times(self) -> Cron:
        """When it ticks; raises if somebody wrote an expression by hand that cannot be read."""
        return Cron.parse(self.cron, self.timezone)


class Tick(BaseModel):
    """What became of one tick."""

    model_config = ConfigDict(frozen=True)

    tick_at: Instant
    disposition: Disposition
    job_id: UUID | None
    recorded_at: Instant
    status: Status | None = None
    """How its job is; None if it has none, or if that is no longer kept."""
    outcome: Outcome | None = None
    started_at: Instant | None = None
    finished_at: Instant | None = None


async def take_due(
    conn: Connection, job_types: Collection[str], *, waiting: Collection[UUID], limit: int
) -> list[ScheduleSnapshot]:
    """Lock schedules whose tick has come, except those that had their turn."""
    values = {"job_types": list(job_types), "waiting": list(waiting), "limit": limit}
    return await _snapshots(conn, "schedules/take_due", values)


async def time_to_next(conn: Connection, job_types: Collection[str]) -> timedelta | None:
    """How long until the next tick that is still to come."""
    cursor = await conn.execute(statement("schedules/next_due"), {"job_types": list(job_types)})
    row = await cursor.fetchone()
    return row[0] if row else None


async def recorded(
    conn: Connection, schedule: ScheduleSnapshot, ticks: Collection[datetime]
) -> set[datetime]:
    """Which of these ticks have their record."""
    cursor = await conn.execute(statement("schedules/find_ticks"), {**schedule.key, "ticks": list(ticks)})
    return {row[0].astimezone(UTC) for row in await cursor.fetchall()}


async def record(conn: Connection, schedule: ScheduleSnapshot, ticks: Mapping[datetime, UUID | None]) -> None:
    """Record ticks with their jobs; those without one were missed."""
    values = {**schedule.key, "ticks": list(ticks), "job_ids": list(ticks.values())}
    await conn.execute(statement("schedules/record_ticks"), values)


async def advance(conn: Connection, schedule: ScheduleSnapshot, last: datetime | None) -> None:
    """Note the last tick that was recorded, if any, and when the next one comes."""
    counted_until = last or schedule.counted_until
    values = {"counted_until": counted_until, "next_tick_at": schedule.times.after(counted_until)}
    await conn.execute(statement("schedules/advance"), {**schedule.key, **values, "last_tick_at": last})


async def miss_due(conn: Connection, schedule: ScheduleSnapshot, *, limit: int) -> bool:
    """Record the ticks that are due as missed, so many at most; whether there are more."""
    try:
        due = schedule.times.due(schedule.counted_until, schedule.read_at, limit + 1)
    except ContractError:  # written by hand: it never had a tick
        return False
    if due[:limit]:
        known = await recorded(conn, schedule, due)
        await record(conn, schedule, {at: None for at in due[:limit] if at not in known})
        await advance(conn, schedule, due[:limit][-1])
    return len(due) > limit


async def set_aside(conn: Connection, schedule: ScheduleSnapshot, *, pause: timedelta, error: str) -> None:
    """Leave a schedule alone that could not be served, and say why."""
    await conn.execute(statement("schedules/set_aside"), {**schedule.key, "pause": pause, "error": error})


async def open_org(conn: Connection, org_id: UUID) -> datetime:
    """The database's time; an org that is unknown or suspended is refused."""
    cursor = await conn.execute(statement("schedules/open_org"), {"org_id": org_id})
    row = await cursor.fetchone()
    assert row is not None
    return row[0]  # type: ignore[no-any-return]


async def create(conn: Connection, values: Mapping[str, Any]) -> ScheduleSnapshot | None:
    """Make a schedule; None if the org has one of that name."""
    return await _snapshot(conn, "schedules/create", {**values, "payload": Jsonb(values["payload"])})


async def update(
    conn: Connection, schedule: ScheduleSnapshot, values: Mapping[str, Any]
) -> ScheduleSnapshot | None:
    """Give a schedule another definition."""
    written = {**values, **schedule.key, "payload": Jsonb(values["payload"])}
    return await _snapshot(conn, "schedules/update", written)


async def pause(
    conn: Connection, schedule: ScheduleSnapshot, *, by: str | None, reason: str | None
) -> ScheduleSnapshot | None:
    """Pause a schedule; by nobody means resume it."""
    return await _snapshot(conn, "schedules/pause", {**schedule.key, "paused_by": by, "reason": reason})


async def delete(conn: Connection, schedule: ScheduleSnapshot) -> None:
    """End a schedule, and keep its history."""
    await conn.execute(statement("schedules/delete"), schedule.key)


async def lock(conn: Connection, org_id: UUID, name: str) -> ScheduleSnapshot | None:
    """One schedule, held for a change."""
    return await _snapshot(conn, "schedules/lock", {"org_id": org_id, "name": name})


async def read(conn: Connection, org_id: UUID, name: str) -> ScheduleSnapshot | None:
    """One schedule of an org."""
    return await _snapshot(conn, "schedules/read", {"org_id": org_id, "name": name})


async def list_after(
    conn: Connection, org_id: UUID, after: str, *, limit: int | None
) -> list[ScheduleSnapshot]:
    """The next schedules of an org, by name; without a limit all of them."""
    return await _snapshots(conn, "schedules/list", {"org_id": org_id, "after": after, "limit": limit})


async def ticks(
    conn: Connection, org_id: UUID, schedule_ids: Sequence[UUID], *, before: datetime = LATEST, limit: int
) -> dict[UUID, list[Tick]]:
    """What became of the last ticks of some schedules, so many of each, the newest first."""
    values = {"org_id": org_id, "schedule_ids": [*schedule_ids], "before": before, "limit": limit}
    found: dict[UUID, list[Tick]] = {which: [] for which in schedule_ids}
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("schedules/read_ticks"), values)
        for row in await cursor.fetchall():
            found[row.pop("schedule_id")].append(Tick.model_validate(row))
    return found


async def _snapshots(conn: Connection, name: str, values: Mapping[str, Any]) -> list[ScheduleSnapshot]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement(name), values)
        return [ScheduleSnapshot.model_validate(row) for row in await cursor.fetchall()]


async def _snapshot(conn: Connection, name: str, values: Mapping[str, Any]) -> ScheduleSnapshot | None:
    return next(iter(await _snapshots(conn, name, values)), None)
