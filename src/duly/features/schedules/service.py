"""Schedules: create, change, pause, resume, delete, run now. Each change is audited in its transaction."""

from __future__ import annotations

import builtins
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from duly.core.errors import ContractError, PayloadRefused, UnknownSchedule, Unschedulable
from duly.core.job import Actor, JobSpec
from duly.db.database import retry_transaction
from duly.db.pool import Connection
from duly.features.arguments import (
    check_org_active,
    check_org_exists,
    checked_count,
    org_uuid,
    require,
    required_text,
)
from duly.features.audit.entries import ChangeRequest, change_request, record_entry
from duly.features.pagination import (
    decode_cursor,
    page_size,
    read_org_page,
    split_page,
    text_cursor,
    time_cursor,
)
from duly.features.schedules import store
from duly.features.schedules.cron import Cron, Missed
from duly.features.schedules.models import SchedulePage, ScheduleSnapshot, Tick, TickPage
from duly.features.schedules.scheduler import schedule_job_spec
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.handle import Handle
from duly.jobs.request_context import as_uuid, current_context
from duly.observability import metrics

__all__ = ["SchedulePage", "ScheduleSnapshot", "Schedules", "Tick", "TickPage"]

T = TypeVar("T")
_MAX_MISSED_PER_STEP = 500


class Schedules:
    """The schedules of the orgs of an application."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def create(
        self,
        org_id: UUID | str,
        name: str,
        *,
        cron: str,
        job_type: str,
        payload: Mapping[str, Any] | None = None,
        timezone: str = "UTC",
        missed: Missed | str = Missed.ONCE,
        project_id: UUID | str | None = None,
        actor: Actor,
        reason: str | None = None,
    ) -> ScheduleSnapshot:
        """Create a schedule, or change the one of that name. Idempotent.

        A changed expression or zone counts from now on: due ticks of the old one are recorded as missed.
        """
        times = Cron.parse(cron, timezone)
        values = {
            **_key(org_id, name),
            **await self._checked_definition(times, job_type, {} if payload is None else payload, missed),
            "project_id": as_uuid("project_id", project_id),
        }
        request = change_request(actor, reason, optional=True)
        return await _repeat_until_done(lambda: self._save(values, times, request))

    async def change(
        self,
        org_id: UUID | str,
        name: str,
        *,
        cron: str | None = None,
        timezone: str | None = None,
        job_type: str | None = None,
        payload: Mapping[str, Any] | None = None,
        missed: Missed | str | None = None,
        actor: Actor,
        reason: str,
    ) -> ScheduleSnapshot:
        """Change some fields of a schedule as `create` would; omitted ones stay. An unknown name raises."""
        request = change_request(actor, reason)

        async def change(conn: Connection, current: ScheduleSnapshot) -> ScheduleSnapshot | None:
            times = Cron.parse(
                current.cron if cron is None else cron, current.timezone if timezone is None else timezone
            )
            _first_tick(times, current.read_at)
            values = await self._checked_definition(
                times,
                current.job_type if job_type is None else job_type,
                current.payload if payload is None else payload,
                current.missed_policy if missed is None else missed,
            )
            return await _update(conn, current, values, times, request)

        return await self._change_locked(org_id, name, change)

    async def list(self, org_id: UUID | str) -> builtins.list[ScheduleSnapshot]:
        """Return all schedules of an org by name; an unknown org raises."""
        org = org_uuid(org_id)
        async with self._app.tenant_session(org) as conn:
            schedules = await store.list_schedules(conn, org, "", limit=None)
            if not schedules:
                await check_org_exists(conn, org)
        return schedules

    async def page(self, org_id: UUID | str, *, limit: int = 50, after: str | None = None) -> SchedulePage:
        """Return a page of the schedules of an org, by name; an unknown org raises."""
        org, start = org_uuid(org_id), decode_cursor(after, text_cursor) or ""
        page = await read_org_page(
            self._app,
            org,
            lambda conn, count: store.list_schedules(conn, org, start, limit=count),
            lambda last: last.name,
            limit=limit,
        )
        return SchedulePage(*page)

    async def get(self, org_id: UUID | str, name: str) -> ScheduleSnapshot:
        """Return a schedule; an unknown name raises."""
        key = _key(org_id, name)
        async with self._app.tenant_session(key["org_id"]) as conn:
            return _require_schedule(await store.read_schedule(conn, **key), name)

    async def ticks(self, org_id: UUID | str, name: str, n: int = 100) -> builtins.list[Tick]:
        """Return the last recorded ticks of a schedule, newest first."""
        schedule = await self.get(org_id, name)
        return (await self.recent([schedule], n))[schedule.schedule_id]

    async def recent(
        self, schedules: Sequence[ScheduleSnapshot], n: int = 10
    ) -> dict[UUID, builtins.list[Tick]]:
        """Return the last recorded ticks of some schedules of one org, up to `n` each, newest first."""
        if not schedules:
            return {}
        ids, limit, org = [one.schedule_id for one in schedules], checked_count(n), schedules[0].org_id
        async with self._app.tenant_session(org) as conn:
            return await store.read_ticks(conn, org, ids, limit=limit)

    async def history(
        self, org_id: UUID | str, name: str, *, limit: int = 50, after: str | None = None
    ) -> TickPage:
        """Return a page of the recorded ticks of a schedule, newest first."""
        size, before = page_size(limit), decode_cursor(after, time_cursor) or store.LATEST
        schedule = await self.get(org_id, name)
        ids = [schedule.schedule_id]
        async with self._app.tenant_session(schedule.org_id) as conn:
            ticks = await store.read_ticks(conn, schedule.org_id, ids, before=before, limit=size + 1)
        return TickPage(*split_page(ticks[schedule.schedule_id], size, lambda last: last.tick_at.isoformat()))

    async def upcoming(self, org_id: UUID | str, name: str, n: int = 5) -> builtins.list[datetime]:
        """Return the next ticks by the database's clock, also of a paused schedule."""
        schedule = await self.get(org_id, name)
        return [*islice(schedule.times.ticks(schedule.read_at), checked_count(n))]

    async def pause(self, org_id: UUID | str, name: str, actor: Actor, reason: str) -> ScheduleSnapshot:
        """Pause a schedule; its ticks are recorded as missed until it is resumed."""
        request = change_request(actor, reason)

        async def change(conn: Connection, schedule: ScheduleSnapshot) -> ScheduleSnapshot | None:
            if schedule.paused_at is not None:
                return schedule
            await _record(conn, schedule, "paused", request)
            return await store.set_pause(conn, schedule, by=request.by, reason=request.reason)

        return await self._change_locked(org_id, name, change)

    async def resume(self, org_id: UUID | str, name: str, actor: Actor, reason: str) -> ScheduleSnapshot:
        """Resume a schedule from its next tick; those during the pause are recorded as missed."""
        request = change_request(actor, reason)

        async def change(conn: Connection, schedule: ScheduleSnapshot) -> ScheduleSnapshot | None:
            if schedule.paused_at is None:
                return schedule
            if await store.record_missed(conn, schedule, limit=_MAX_MISSED_PER_STEP):
                return None
            await _record(conn, schedule, "resumed", request)
            return await store.set_pause(conn, schedule, by=None, reason=None)

        return await self._change_locked(org_id, name, change)

    async def delete(self, org_id: UUID | str, name: str, actor: Actor, reason: str) -> None:
        """Delete a schedule. Its recorded ticks and its jobs stay; the name is free again."""
        request = change_request(actor, reason)

        async def change(conn: Connection, schedule: ScheduleSnapshot) -> ScheduleSnapshot | None:
            if await store.record_missed(conn, schedule, limit=_MAX_MISSED_PER_STEP):
                return None
            await _record(conn, schedule, "deleted", request)
            await store.delete_schedule(conn, schedule)
            return schedule

        await self._change_locked(org_id, name, change)

    async def run_now(self, org_id: UUID | str, name: str, actor: Actor, reason: str) -> Handle[Any]:
        """Enqueue the job of a schedule once, now, even if it is paused. It counts as no tick."""
        request = change_request(actor, reason)

        async def change(conn: Connection, schedule: ScheduleSnapshot) -> tuple[Handle[Any], JobSpec]:
            context = current_context()
            spec = schedule_job_spec(
                schedule,
                self._app.registry.get(schedule.job_type),
                actor,
                metadata={"run_now": True},
                request_id=context.request_id,
                traceparent=context.traceparent,
            )
            [enqueued] = await job_store.enqueue_jobs(conn, schedule.org_id, [spec])
            await _record(conn, schedule, "run_now", request, job_id=str(enqueued.job_id))
            return Handle(self._app, schedule.org_id, enqueued.job_id, created=enqueued.created), spec

        handle, spec = await self._change_locked(org_id, name, change)
        if handle.created:
            metrics.count_enqueued(spec.job_type, spec.policy.queue, 1)
        (await self._app.resources()).waker.wake()
        return handle

    async def _change_locked(
        self,
        org_id: UUID | str,
        name: str,
        change: Callable[[Connection, ScheduleSnapshot], Awaitable[T | None]],
    ) -> T:
        """Change a schedule under its lock; repeat while `change` returns None: more ticks are due."""
        key = _key(org_id, name)

        async def once() -> T | None:
            async with (await self._app.resources()).database.engine() as conn:
                return await change(conn, _require_schedule(await store.lock_schedule(conn, **key), name))

        return await _repeat_until_done(once)

    async def _save(
        self, values: Mapping[str, Any], times: Cron, request: ChangeRequest
    ) -> ScheduleSnapshot | None:
        async with (await self._app.resources()).database.engine() as conn:
            next_tick_at = _first_tick(times, await check_org_active(conn, values["org_id"]))
            current = await store.lock_schedule(conn, values["org_id"], values["name"])
            if current is not None:
                return await _update(conn, current, values, times, request)
            created = await store.create_schedule(
                conn, {**values, "next_tick_at": next_tick_at, "created_by": request.by}
            )
            if created is not None:  # otherwise another node created it first: read it again
                await _record(conn, created, "created", request, **_definition(values))
            return created

    async def _checked_definition(
        self, times: Cron, job_type: str, payload: Mapping[str, Any], missed: Missed | str
    ) -> dict[str, Any]:
        job = self._app.registry.get(job_type)
        if not job.policy.schedulable:
            raise Unschedulable(
                f"{job_type} is of category {job.policy.category} and may not be scheduled",
                field="job_type",
                fix="declare it with schedulable=True, or as maintenance or notification",
            )
        encoded = job.codec.encode_mapping(payload)
        max_bytes = (await self._app.resources()).payload_inline_max
        if len(encoded.encode()) > max_bytes:
            raise PayloadRefused(
                f"larger than {max_bytes} bytes",
                field="payload",
                fix="store it as a blob and pass its reference",
            )
        return {
            "cron": times.expression,
            "timezone": times.zone.key,
            "job_type": job.name,
            "payload": json.loads(encoded),
            "missed_policy": _checked_missed(missed),
        }


async def _update(
    conn: Connection,
    current: ScheduleSnapshot,
    values: Mapping[str, Any],
    times: Cron,
    request: ChangeRequest,
) -> ScheduleSnapshot | None:
    changed = sorted(name for name, value in values.items() if getattr(current, name) != value)
    if not changed:
        return current
    counted_until, next_tick_at = current.counted_until, current.next_tick_at
    if {"cron", "timezone"} & set(changed):
        if await store.record_missed(conn, current, limit=_MAX_MISSED_PER_STEP):
            return None
        # While this transaction waited for the lock, a scheduler may have recorded ticks after its start.
        counted_until = max(current.read_at, counted_until)
        next_tick_at = times.after(counted_until)
    await _record(conn, current, "updated", request, changed=changed, **_definition(values))
    values = {**values, "counted_until": counted_until, "next_tick_at": next_tick_at}
    return await store.update_schedule(conn, current, values)


async def _repeat_until_done(work: Callable[[], Awaitable[T | None]]) -> T:
    while True:
        result = await retry_transaction(work)
        if result is not None:
            return result


async def _record(
    conn: Connection, schedule: ScheduleSnapshot, action: str, request: ChangeRequest, **detail: Any
) -> None:
    target, detail = str(schedule.schedule_id), {"name": schedule.name, **detail}
    await record_entry(conn, request, schedule.org_id, f"schedule.{action}", target, **detail)


def _definition(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the definition for the audit trail, without the payload."""
    return {name: str(values[name]) for name in ("cron", "timezone", "job_type", "missed_policy")}


def _first_tick(times: Cron, now: datetime) -> datetime:
    at = times.after(now)
    if at is None:
        raise ContractError(
            f"{times.expression!r} never ticks", field="cron", fix="use days that the months have"
        )
    return at


def _key(org_id: UUID | str, name: str) -> dict[str, Any]:
    return {"org_id": org_uuid(org_id), "name": required_text("name", name)}


def _checked_missed(missed: Missed | str) -> Missed:
    try:
        return Missed(missed)
    except ValueError:
        raise ContractError(
            f"{missed!r} is not a policy for missed ticks",
            field="missed",
            fix=f"use one of {', '.join(Missed)}",
        ) from None


def _require_schedule(schedule: ScheduleSnapshot | None, name: str) -> ScheduleSnapshot:
    return require(schedule, UnknownSchedule, f"schedule {name!r}", field="name")
