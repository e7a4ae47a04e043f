"""Limits and pauses of orgs and job types. Each change is audited in its transaction."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from uuid import UUID

from duly.core.errors import ContractError, MissingField
from duly.core.job import SYSTEM_ORG, Actor
from duly.db.pool import Connection
from duly.features.arguments import check_org_exists
from duly.features.audit.entries import ChangeRequest, change_request, change_under_lock, record_entry
from duly.features.limits import store
from duly.features.limits.models import (
    EVERY_ORG,
    EVERY_TYPE,
    UNCHANGED,
    Limit,
    LimitKey,
    LimitPage,
    Unchanged,
)
from duly.features.pagination import decode_cursor, page_size, split_page
from duly.jobs.application import App
from duly.jobs.request_context import as_uuid, checked_text

__all__ = ["Limit", "LimitPage", "Limits"]

MAX_LIMIT = 1_000_000
MIN_STARTS_PER_SECOND, MAX_STARTS_PER_SECOND = 0.0001, 10_000.0
_LIMIT_FIELDS = ("max_running", "starts_per_second", "burst", "max_waiting")
_JOB_TYPE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")


class Limits:
    """The limits of orgs, of job types, and of job types of an org: running, started and queued jobs."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def set(
        self,
        org_id: UUID | str | None = None,
        job_type: str | None = None,
        *,
        max_running: int | Unchanged | None = UNCHANGED,
        starts_per_second: float | Unchanged | None = UNCHANGED,
        burst: int | Unchanged | None = UNCHANGED,
        max_waiting: int | Unchanged | None = UNCHANGED,
        actor: Actor,
        reason: str,
    ) -> Limit:
        """Limit an org, a job type, or a job type of an org. Omitted fields stay; None lifts a limit."""
        fields = dict(zip(_LIMIT_FIELDS, (max_running, starts_per_second, burst, max_waiting), strict=True))
        key = _limit_key(org_id, job_type)
        values = _checked_values(key, {name: v for name, v in fields.items() if v is not UNCHANGED})
        changed = partial(_changed_limits, values=values)
        return await self._change(key, change_request(actor, reason), "set", changed)

    async def pause(
        self, org_id: UUID | str | None = None, job_type: str | None = None, *, actor: Actor, reason: str
    ) -> Limit:
        """Pause these jobs until they are resumed: running ones continue, queued ones wait."""
        key, request = _limit_key(org_id, job_type), change_request(actor, reason)
        values = {"paused_by": request.by, "pause_reason": request.reason}
        return await self._change(key, request, "paused", lambda limit: {} if limit.paused_at else values)

    async def resume(
        self, org_id: UUID | str | None = None, job_type: str | None = None, *, actor: Actor, reason: str
    ) -> Limit:
        """Resume these jobs; other pauses and limits still apply."""
        key, request = _limit_key(org_id, job_type), change_request(actor, reason)
        values = {"paused_by": None, "pause_reason": None}
        return await self._change(key, request, "resumed", lambda limit: values if limit.paused_at else {})

    async def get(self, org_id: UUID | str | None = None, job_type: str | None = None) -> Limit:
        """Return the limit of exactly this org and job type; one without values if none was set."""
        key = _limit_key(org_id, job_type)
        async with (await self._app.resources()).database.engine() as conn:
            return await store.read_limit(conn, key) or _unlimited(key)

    async def list(
        self,
        org_id: UUID | str | None = None,
        job_type: str | None = None,
        *,
        limit: int = 50,
        after: str | None = None,
    ) -> LimitPage:
        """Return all limits and pauses, also lifted ones; of one org or one job type if named."""
        start, size = decode_cursor(after, _parse_cursor) or LimitKey(), page_size(limit)
        org, name = as_uuid("org_id", org_id), _checked_job_type(job_type)
        async with (await self._app.resources()).database.engine() as conn:
            limits = await store.list_limits(conn, start, org_id=org, job_type=name, limit=size + 1)
        return LimitPage(*split_page(limits, size, lambda last: last.key))

    async def _change(
        self,
        key: LimitKey,
        request: ChangeRequest,
        action: str,
        changed_fields: Callable[[Limit], Mapping[str, Any]],
    ) -> Limit:
        async def lock(conn: Connection) -> Limit:
            if key.org_id != EVERY_ORG:
                await check_org_exists(conn, key.org_id)
            return await store.lock_limit(conn, key) or _unlimited(key)

        save = partial(_save, key=key, request=request, action=action)
        limit = await change_under_lock(self._app, lock, changed_fields, save)
        (await self._app.resources()).waker.wake()
        return limit


async def _save(
    conn: Connection,
    limit: Limit,
    values: Mapping[str, Any],
    *,
    key: LimitKey,
    request: ChangeRequest,
    action: str,
) -> Limit:
    if limit.updated_at is None:
        # The limit has no row yet. Another transaction may create it first, so read it again.
        await store.create_limit(conn, key)
        limit = await store.lock_limit(conn, key) or limit
    fields = {name: getattr(limit, name) for name in (*_LIMIT_FIELDS, "paused_by", "pause_reason")}
    await store.change_limit(conn, key, {**fields, **values})
    changed = await store.read_limit(conn, key)
    if changed is not None and changed.counts and not limit.counts:
        await store.count_running(conn, key)
        changed = await store.read_limit(conn, key)
    assert changed is not None  # the row is locked
    names = [name for name in values if name in _LIMIT_FIELDS]
    detail = {
        "before": {name: getattr(limit, name) for name in names},
        "after": {name: values[name] for name in names},
    }
    org = SYSTEM_ORG if key.org_id == EVERY_ORG else key.org_id
    await record_entry(conn, request, org, f"limit.{action}", key.name, **(detail if names else {}))
    return changed


def _unlimited(key: LimitKey) -> Limit:
    return Limit(org_id=None if key.org_id == EVERY_ORG else key.org_id, job_type=key.job_type or None)


def _limit_key(org_id: UUID | str | None, job_type: str | None) -> LimitKey:
    org, name = as_uuid("org_id", org_id), _checked_job_type(job_type)
    if org is None and name is None:
        raise MissingField(
            "missing",
            field="org_id",
            fix="name an org, a job type, or both; to stop a queue, pause it",
        )
    if org == EVERY_ORG:
        raise ContractError("the zero uuid is not an org", field="org_id", fix="omit it for every org")
    return LimitKey(org or EVERY_ORG, name or EVERY_TYPE)


def _parse_cursor(org_id: str, job_type: str) -> LimitKey:
    return LimitKey(UUID(org_id), checked_text("after", job_type or None) or EVERY_TYPE)


def _checked_job_type(job_type: str | None) -> str | None:
    """Return a valid name of a job type, which this process need not declare."""
    name = checked_text("job_type", job_type)
    if name is not None and not _JOB_TYPE.fullmatch(name):
        raise ContractError(f"{name!r} is not a job type", field="job_type", fix="use lower_case.words")
    return name


def _checked_values(key: LimitKey, values: dict[str, Any]) -> dict[str, Any]:
    if not values:
        fix = f"pass one of {', '.join(_LIMIT_FIELDS)}"
        raise ContractError("nothing to set", field="max_running", fix=fix)
    for field, value in values.items():
        if value is not None:
            _check_range(field, value)
    if values.get("max_waiting") is not None and (key.org_id == EVERY_ORG or key.job_type != EVERY_TYPE):
        raise ContractError(
            "queued jobs are counted by org", field="max_waiting", fix="set it for an org, without a job type"
        )
    return values


def _check_range(field: str, value: Any) -> None:
    if field == "starts_per_second":
        valid = type(value) in (int, float) and MIN_STARTS_PER_SECOND <= value <= MAX_STARTS_PER_SECOND
        fix = f"use {MIN_STARTS_PER_SECOND} to {MAX_STARTS_PER_SECOND:.0f}, or none for no limit"
    else:
        minimum = 1 if field == "burst" else 0
        valid = type(value) is int and minimum <= value <= MAX_LIMIT
        fix = f"use {minimum} to {MAX_LIMIT}, or none for no limit"
    if not valid:
        raise ContractError(f"{value!r} is out of range", field=field, fix=fix)


def _changed_limits(limit: Limit, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits that change. A rate always has a burst."""
    merged = {**{name: getattr(limit, name) for name in _LIMIT_FIELDS}, **values}
    rate = merged["starts_per_second"]
    if rate is None and values.get("burst") is not None:
        raise ContractError("a burst needs a rate", field="burst", fix="set starts_per_second with it")
    if rate is None:
        merged["burst"] = None
    elif merged["burst"] is None:
        merged["burst"] = max(1, math.ceil(rate))
    return {name: value for name, value in merged.items() if value != getattr(limit, name)}
