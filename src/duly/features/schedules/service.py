"""Schedules: made, changed, paused and run by hand. Each change is audited in its own transaction."""

from __future__ import annotations

import builtins
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from duly.core.errors import ContractError, PayloadRefused, UnknownSchedule, Unschedulable
from duly.core.job import Actor, JobSpec, Origin
from duly.db.database import retry_transaction
from duly.db.pool import Connection
from duly.features.arguments import check_org_exists, checked_count, org_uuid, required_text
from duly.features.audit import entries as audited
from duly.features.audit.entries import ChangeRequest, change_request
from duly.features.pagination import (
    decode_cursor,
    encode_cursor,
    page_size,
    split_page,
    text_cursor,
    time_cursor,
)
from duly.features.schedules import store as schedules
from duly.features.schedules.cron import Cron, Missed
from duly.features.schedules.store import LATEST, ScheduleSnapshot, Tick
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.enqueue_options import new_job_id, new_result_id
from duly.jobs.handle import Handle
from duly.jobs.job import Job
from duly.jobs.request_context import as_uuid, current_context
from duly.observability import metrics

__all__ = ["SchedulePage", "ScheduleSnapshot", "Schedules", "Tick", "TickPage"]

T = TypeVar("T")
_Values = Mapping[str, Any]
_STEP = 500


@dataclass(frozen=True, slots=True)
class SchedulePage:
    """Some schedules; `after` asks for those that follow, and is None at the end."""

    schedules: tuple[ScheduleSnapshot, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class TickPage:
    """Some ticks; `after` asks for those before them, and is None at the end."""

    ticks: tuple[Tick, ...]
    after: str | None


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
        """Make the schedule, or change the one of that name; calling it again changes nothing.

        A changed expression or zone counts from now on: due ticks of the old one are recorded as missed.
        """
        times, job = Cron.parse(cron, timezone), self._schedulable(job_type)
        wanted = {
            **_key(org_id, name),
            **_timed(times),
            "job_type": job.name,
            "payload": await self._payload(job, {} if payload is None else payload),
            "missed_policy": _missed(missed),
            "project_id": as_uuid("project_id", project_id),
        }
        who = change_request(actor, reason, optional=True)
        return await _until_done(lambda: self._save(wanted, times, who))

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
        """Change a part of a schedule as `create` would; what is left out stays. An unknown name raises."""
        who = change_request(actor, reason)

        async def change(conn: Connection, now: ScheduleSnapshot) -> ScheduleSnapshot | None:
            times = Cron.parse(
                now.cron if cron is None else cron, now.timezone if timezone is None else timezone
            )
            job = self._schedulable(now.job_type if job_type is None else job_type)
            _coming(times, now.read_at)
            wanted = {
                **{name: getattr(now, name) for name in ("org_id", "name", "project_id")},
                **_timed(times),
                "job_type": job.name,
                "payload": await self._payload(job, now.payload if payload is None else payload),
                "missed_policy": now.missed_policy if missed is None else _missed(missed),
            }
            return await _update(conn, now, wanted, times, who)

        return await self._change(org_id, name, change)

    async def list(self, org_id: UUID | str) -> builtins.list[ScheduleSnapshot]:
        """All schedules of an org, by name; an unknown org raises."""
        return await self._listed(org_uuid(org_id), "", None)

    async def page(self, org_id: UUID | str, *, limit: int = 50, after: str | None = None) -> SchedulePage:
        """Some schedules of an org, by name; an unknown org raises."""
        whose, size, start = org_uuid(org_id), page_size(limit), decode_cursor(after, text_cursor) or ""
        found = await self._listed(whose, start, size + 1)
        return SchedulePage(*split_page(found, size, lambda last: last.name))

    async def get(self, org_id: UUID | str, name: str) -> ScheduleSnapshot:
        """One schedule; an unknown name raises."""
        key = _key(org_id, name)
        async with self._app.tenant_session(key["org_id"]) as conn:
            return _found(await schedules.read(conn, **key), name)

    async def ticks(self, org_id: UUID | str, name: str, n: int = 100) -> builtins.list[Tick]:
        """What became of its last ticks, the newest first."""
        schedule, most = await self.get(org_id, name), checked_count(n)
        return (await self.recent([schedule], most))[schedule.schedule_id]

    async def recent(self, some: Sequence[ScheduleSnapshot], n: int = 10) -> dict[UUID, builtins.list[Tick]]:
        """What became of the last ticks of some schedules of one org, so many of each, the newest first."""
        if not some:
            return {}
        which, most = [one.schedule_id for one in some], checked_count(n)
        async with self._app.tenant_session(some[0].org_id) as conn:
            return await schedules.ticks(conn, some[0].org_id, which, limit=most)

    async def history(
        self, org_id: UUID | str, name: str, *, limit: int = 50, after: str | None = None
    ) -> TickPage:
        """A page of what became of its ticks, the newest first."""
        size, before = page_size(limit), decode_cursor(after, time_cursor) or LATEST
        schedule = await self.get(org_id, name)
        async with self._app.tenant_session(schedule.org_id) as conn:
            found = await schedules.ticks(
                conn, schedule.org_id, [schedule.schedule_id], before=before, limit=size + 1
            )
        ticks = found[schedule.schedule_id]
        page = tuple(ticks[:size])
        return TickPage(page, encode_cursor(page[-1].tick_at.isoformat()) if len(ticks) > size else None)

    async def upcoming(self, org_id: UUID | str, name: str, n: int = 5) -> builtins.list[datetime]:
        """Its next ticks by the database's clock; of a paused schedule those it would have."""
        schedule = await self.get(org_id, name)
        return [*islice(schedule.times.ticks(schedule.read_at), checked_count(n))]

    async def pause(self, org_id: UUID | str, name: str, actor: Actor, reason: str) -> ScheduleSnapshot:
        """Run nothing until it is resumed; ticks are recorded as missed meanwhile."""
        who = change_request(actor, reason)

        async def change(conn: Connection, schedule: ScheduleSnapshot) -> ScheduleSnapshot | None:
            if schedule.paused_at is not None:
                return schedule
            await _note(conn, schedule, "paused", who)
            return await schedules.pause(conn, schedule, by=who.by, reason=who.reason)

        return await self._change(org_id, name, change)

    async def resume(self, org_id: UUID | str, name: str, actor: Actor, reason: str) -> ScheduleSnapshot:
        """Let it run again, from its next tick on; those of the pause are recorded as missed."""
        who = change_request(actor, reason)

        async def change(conn: Connection, schedule: ScheduleSnapshot) -> ScheduleSnapshot | None:
            if schedule.paused_at is None:
                return schedule
            if await schedules.miss_due(conn, schedule, limit=_STEP):
                return None
            await _note(conn, schedule, "resumed", who)
            return await schedules.pause(conn, schedule, by=None, reason=None)

        return await self._change(org_id, name, change)

    async def delete(self, org_id: UUID | str, name: str, actor: Actor, reason: str) -> None:
        """End it. Its ticks stay on record and its jobs go on; the name is free again."""
        who = change_request(actor, reason)

        async def change(conn: Connection, schedule: ScheduleSnapshot) -> ScheduleSnapshot | None:
            if await schedules.miss_due(conn, schedule, limit=_STEP):
                return None
            await _note(conn, schedule, "deleted", who)
            await schedules.delete(conn, schedule)
            return schedule

        await self._change(org_id, name, change)

    async def run_now(self, org_id: UUID | str, name: str, actor: Actor, reason: str) -> Handle[Any]:
        """Run it once more, here and now, paused or not. It is no tick, and changes none."""
        who = change_request(actor, reason)

        async def change(conn: Connection, schedule: ScheduleSnapshot) -> tuple[Handle[Any], JobSpec]:
            spec = _by_hand(schedule, self._app.registry.get(schedule.job_type), actor)
            [written] = await job_store.enqueue_jobs(conn, schedule.org_id, [spec])
            await _note(conn, schedule, "run_now", who, job_id=str(written.job_id))
            return Handle(self._app, schedule.org_id, written.job_id, created=written.created), spec

        handle, spec = await self._change(org_id, name, change)
        if handle.created:
            metrics.enqueued(spec.job_type, spec.policy.queue, 1)
        (await self._app.resources()).waker.wake()
        return handle

    async def _change(
        self,
        org_id: UUID | str,
        name: str,
        change: Callable[[Connection, ScheduleSnapshot], Awaitable[T | None]],
    ) -> T:
        """Change a schedule under its lock; again while the change says None: there was too much for once."""
        key = _key(org_id, name)

        async def once() -> T | None:
            async with (await self._app.resources()).database.engine() as conn:
                return await change(conn, _found(await schedules.lock(conn, **key), name))

        return await _until_done(once)

    async def _listed(self, org_id: UUID, after: str, most: int | None) -> builtins.list[ScheduleSnapshot]:
        async with self._app.tenant_session(org_id) as conn:
            listed = await schedules.list_after(conn, org_id, after, limit=most)
            if not listed:
                await check_org_exists(conn, org_id)
            return listed

    async def _save(self, wanted: _Values, times: Cron, who: ChangeRequest) -> ScheduleSnapshot | None:
        async with (await self._app.resources()).database.engine() as conn:
            now = await schedules.open_org(conn, wanted["org_id"])
            first = {"next_tick_at": _coming(times, now)}
            existing = await schedules.lock(conn, wanted["org_id"], wanted["name"])
            if existing is not None:
                return await _update(conn, existing, wanted, times, who)
            made = await schedules.create(conn, {**wanted, **first, "created_by": who.by})
            if made is not None:  # else another node was faster: look again
                await _note(conn, made, "created", who, **_said(wanted))
            return made

    def _schedulable(self, job_type: str) -> Job[..., Any]:
        job = self._app.registry.get(job_type)
        if not job.policy.schedulable:
            raise Unschedulable(
                f"{job_type} is of category {job.policy.category} and may not be scheduled",
                field="job_type",
                fix="declare it with schedulable=True, or as maintenance or notification",
            )
        return job

    async def _payload(self, job: Job[..., Any], payload: Mapping[str, Any]) -> Any:
        encoded, most = job.codec.encode_mapping(payload), (await self._app.resources()).payload_inline_max
        if len(encoded.encode()) > most:
            raise PayloadRefused(
                f"larger than {most} bytes", field="payload", fix="store it as a blob and pass its reference"
            )
        return json.loads(encoded)


async def _update(
    conn: Connection, existing: ScheduleSnapshot, wanted: _Values, times: Cron, who: ChangeRequest
) -> ScheduleSnapshot | None:
    changed = sorted(name for name, value in wanted.items() if getattr(existing, name) != value)
    if not changed:
        return existing
    counted_until, next_tick_at = existing.counted_until, existing.next_tick_at
    if {"cron", "timezone"} & set(changed):
        if await schedules.miss_due(conn, existing, limit=_STEP):
            return None
        # A scheduler that we waited for may have counted further than the time at which we began.
        counted_until = max(existing.read_at, counted_until)
        next_tick_at = times.after(counted_until)
    await _note(conn, existing, "updated", who, changed=changed, **_said(wanted))
    values = {**wanted, "counted_until": counted_until, "next_tick_at": next_tick_at}
    return await schedules.update(conn, existing, values)


async def _until_done(work: Callable[[], Awaitable[T | None]]) -> T:
    while True:
        done = await retry_transaction(work)
        if done is not None:
            return done


async def _note(
    conn: Connection, schedule: ScheduleSnapshot, action: str, who: ChangeRequest, **detail: Any
) -> None:
    which, what = str(schedule.schedule_id), {"name": schedule.name, **detail}
    await audited.record_entry(conn, who, schedule.org_id, f"schedule.{action}", which, **what)


def _by_hand(schedule: ScheduleSnapshot, job: Job[..., Any], actor: Actor) -> JobSpec:
    here, family, made = current_context(), f"schedule:{schedule.schedule_id}", new_job_id()
    key = f"{family}:run_now:{made}"
    return JobSpec(
        job_id=made,
        result_id=new_result_id(),
        job_type=job.name,
        origin=Origin(
            schedule.org_id, actor, here.request_id or key, family, schedule.project_id, here.traceparent
        ),
        policy=job.policy,
        payload=json.dumps(schedule.payload),
        idempotency_key=key,
        metadata={"schedule_id": str(schedule.schedule_id), "run_now": True},
    )


def _said(wanted: _Values) -> dict[str, Any]:
    """The definition for the audit trail: not the payload, which may be anything."""
    return {name: str(wanted[name]) for name in ("cron", "timezone", "job_type", "missed_policy")}


def _coming(times: Cron, now: datetime) -> datetime:
    at = times.after(now)
    if at is None:
        raise ContractError(
            f"{times.expression!r} never comes", field="cron", fix="name days that the months have"
        )
    return at


def _key(org_id: UUID | str, name: str) -> dict[str, Any]:
    return {"org_id": org_uuid(org_id), "name": required_text("name", name)}


def _timed(times: Cron) -> dict[str, str]:
    return {"cron": times.expression, "timezone": times.zone.key}


def _missed(missed: Missed | str) -> Missed:
    try:
        return Missed(missed)
    except ValueError:
        raise ContractError(
            f"{missed!r} is no policy", field="missed", fix=f"one of {', '.join(Missed)}"
        ) from None


def _found(schedule: ScheduleSnapshot | None, name: str) -> ScheduleSnapshot:
    if schedule is None:
        raise UnknownSchedule(f"no schedule {name!r} in this org", field="name", fix="check name and org")
    return schedule
