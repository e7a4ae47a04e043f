"""Statements on schedules and their ticks.

A tick is recorded once, with its job or as missed, under the lock of its schedule.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from duly.core.errors import ContractError
from duly.db.pool import Connection
from duly.db.rows import first, read_all, read_first, rows
from duly.db.statements import statement
from duly.features.schedules.models import ScheduleSnapshot, Tick

LATEST = datetime.max.replace(tzinfo=UTC)


async def take_due(
    conn: Connection, job_types: Collection[str], *, excluded: Collection[UUID], limit: int
) -> list[ScheduleSnapshot]:
    """Lock schedules of these job types whose tick is due, without the excluded ones."""
    values = {"job_types": list(job_types), "excluded": list(excluded), "limit": limit}
    return await read_all(conn, ScheduleSnapshot, "schedules/take_due", values)


async def time_to_next_tick(conn: Connection, job_types: Collection[str]) -> timedelta | None:
    """Return the time until the next tick of these job types that is not due yet."""
    row = await first(conn, "schedules/read_time_to_next_tick", {"job_types": list(job_types)})
    return row["remaining"] if row else None


async def find_recorded(
    conn: Connection, schedule: ScheduleSnapshot, ticks: Collection[datetime]
) -> set[datetime]:
    """Return those of these ticks that are recorded."""
    found = await rows(conn, "schedules/find_recorded", {**schedule.key, "ticks": list(ticks)})
    return {row["tick_at"].astimezone(UTC) for row in found}


async def record_ticks(
    conn: Connection, schedule: ScheduleSnapshot, ticks: Mapping[datetime, UUID | None]
) -> None:
    """Record ticks with their jobs; those without a job are missed."""
    values = {**schedule.key, "ticks": list(ticks), "job_ids": list(ticks.values())}
    await conn.execute(statement("schedules/record_ticks"), values)


async def advance(conn: Connection, schedule: ScheduleSnapshot, last: datetime | None) -> None:
    """Write the last recorded tick, if any, and the time of the next one."""
    counted_until = last or schedule.counted_until
    values = {"counted_until": counted_until, "next_tick_at": schedule.times.after(counted_until)}
    await conn.execute(statement("schedules/advance"), {**schedule.key, **values, "last_tick_at": last})


async def record_missed(conn: Connection, schedule: ScheduleSnapshot, *, limit: int) -> bool:
    """Record up to `limit` due ticks as missed; return whether more are due."""
    try:
        due = schedule.times.due(schedule.counted_until, schedule.read_at, limit + 1)
    except ContractError:  # the row was edited by hand, and never had a tick
        return False
    if due[:limit]:
        recorded = await find_recorded(conn, schedule, due)
        await record_ticks(conn, schedule, {at: None for at in due[:limit] if at not in recorded})
        await advance(conn, schedule, due[:limit][-1])
    return len(due) > limit


async def postpone(conn: Connection, schedule: ScheduleSnapshot, *, pause: timedelta, error: str) -> None:
    """Postpone a schedule whose ticks could not be enqueued, with the error."""
    await conn.execute(statement("schedules/postpone"), {**schedule.key, "pause": pause, "error": error})


async def create_schedule(conn: Connection, values: Mapping[str, Any]) -> ScheduleSnapshot | None:
    """Create a schedule; None if the org has one of that name."""
    return await read_first(conn, ScheduleSnapshot, "schedules/create", _with_json(values))


async def update_schedule(
    conn: Connection, schedule: ScheduleSnapshot, values: Mapping[str, Any]
) -> ScheduleSnapshot | None:
    """Replace the definition of a locked schedule; its project stays unless `values` has one."""
    values = {"project_id": schedule.project_id, **values, **schedule.key}
    return await read_first(conn, ScheduleSnapshot, "schedules/update", _with_json(values))


async def set_pause(
    conn: Connection, schedule: ScheduleSnapshot, *, by: str | None, reason: str | None
) -> ScheduleSnapshot | None:
    """Pause a locked schedule; resume it if `by` is None."""
    return await read_first(
        conn, ScheduleSnapshot, "schedules/set_pause", {**schedule.key, "paused_by": by, "reason": reason}
    )


async def delete_schedule(conn: Connection, schedule: ScheduleSnapshot) -> None:
    """Delete a schedule; its ticks stay recorded."""
    await conn.execute(statement("schedules/delete"), schedule.key)


async def lock_schedule(conn: Connection, org_id: UUID, name: str) -> ScheduleSnapshot | None:
    """Lock a schedule for a change."""
    return await read_first(conn, ScheduleSnapshot, "schedules/lock", {"org_id": org_id, "name": name})


async def read_schedule(conn: Connection, org_id: UUID, name: str) -> ScheduleSnapshot | None:
    """Read a schedule of an org."""
    return await read_first(conn, ScheduleSnapshot, "schedules/read", {"org_id": org_id, "name": name})


async def list_schedules(
    conn: Connection, org_id: UUID, after: str, *, limit: int | None
) -> list[ScheduleSnapshot]:
    """Return the schedules of an org after a name, by name; all of them without a limit."""
    return await read_all(
        conn, ScheduleSnapshot, "schedules/list", {"org_id": org_id, "after": after, "limit": limit}
    )


async def read_ticks(
    conn: Connection, org_id: UUID, schedule_ids: Sequence[UUID], *, before: datetime = LATEST, limit: int
) -> dict[UUID, list[Tick]]:
    """Return the last recorded ticks by schedule, up to `limit` each, newest first."""
    values = {"org_id": org_id, "schedule_ids": [*schedule_ids], "before": before, "limit": limit}
    ticks: dict[UUID, list[Tick]] = {schedule_id: [] for schedule_id in schedule_ids}
    for row in await rows(conn, "schedules/read_ticks", values):
        ticks[row.pop("schedule_id")].append(Tick.model_validate(row))
    return ticks


def _with_json(values: Mapping[str, Any]) -> dict[str, Any]:
    return {**values, "payload": Jsonb(values["payload"])}
