"""Limits and pauses of orgs and job types. Each change is audited in its own transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from duly.core.errors import ContractError, MissingField
from duly.core.job import SYSTEM_ORG, Actor
from duly.db.pool import Connection
from duly.features.arguments import check_org_exists
from duly.features.audit.entries import ChangeRequest, audited_transaction, change_request, record_entry
from duly.features.limits import rules as limit_rules
from duly.features.limits import store as gates
from duly.features.limits.rules import UNCHANGED, Unchanged
from duly.features.limits.store import EVERY_ORG, EVERY_TYPE, GateKey, Limit
from duly.features.pagination import decode_cursor, page_size, split_page
from duly.jobs.application import App
from duly.jobs.request_context import as_uuid, checked_text

__all__ = ["Limit", "LimitPage", "Limits"]

_Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LimitPage:
    """Some limits; `after` asks for those that follow, and is None at the end."""

    limits: tuple[Limit, ...]
    after: str | None


class Limits:
    """What orgs, job types, and job types of an org may have running, started and waiting."""

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
        """Limit an org, a job type, or a job type of an org. What is left out stays; None is no limit."""
        given = {
            "max_running": max_running,
            "starts_per_second": starts_per_second,
            "burst": burst,
            "max_waiting": max_waiting,
        }
        key, who = _key(org_id, job_type), change_request(actor, reason)
        wanted = limit_rules.checked(key, {n: v for n, v in given.items() if v is not UNCHANGED})
        return await self._change(key, who, "set", lambda now: limit_rules.merged(now, wanted))

    async def pause(
        self, org_id: UUID | str | None = None, job_type: str | None = None, *, actor: Actor, reason: str
    ) -> Limit:
        """Start none of these jobs until they are resumed; those that run go on, new ones wait."""
        key, who = _key(org_id, job_type), change_request(actor, reason)

        def paused(now: Limit) -> _Values:
            return {} if now.paused_at else {"paused_by": who.by, "pause_reason": who.reason}

        return await self._change(key, who, "paused", paused)

    async def resume(
        self, org_id: UUID | str | None = None, job_type: str | None = None, *, actor: Actor, reason: str
    ) -> Limit:
        """Let them start again; other pauses and limits still hold."""
        key, who = _key(org_id, job_type), change_request(actor, reason)

        def resumed(now: Limit) -> _Values:
            return {"paused_by": None, "pause_reason": None} if now.paused_at else {}

        return await self._change(key, who, "resumed", resumed)

    async def get(self, org_id: UUID | str | None = None, job_type: str | None = None) -> Limit:
        """What holds for exactly these; without limits if nobody has set any."""
        key = _key(org_id, job_type)
        async with (await self._app.resources()).database.engine() as conn:
            return await gates.read(conn, key) or _unlimited(key)

    async def list(
        self,
        org_id: UUID | str | None = None,
        job_type: str | None = None,
        *,
        limit: int = 50,
        after: str | None = None,
    ) -> LimitPage:
        """Everything that was ever limited or paused; of one org, or of one job type, if so wished."""
        start, size = decode_cursor(after, _read_key) or GateKey(), page_size(limit)
        org, chosen = as_uuid("org_id", org_id), limit_rules.check_type_name(job_type)
        async with (await self._app.resources()).database.engine() as conn:
            found = await gates.list_after(conn, start, org_id=org, job_type=chosen, limit=size + 1)
        return LimitPage(*split_page(found, size, lambda last: last.key))

    async def _change(
        self, key: GateKey, who: ChangeRequest, action: str, changed: Callable[[Limit], Mapping[str, Any]]
    ) -> Limit:
        """Change a gate under its lock. A change of nothing makes no gate, and leaves no trace."""

        async def once(conn: Connection) -> Limit:
            before = await _locked(conn, key)
            values = changed(before or _unlimited(key))
            if not values:
                return before or _unlimited(key)
            return await _write(conn, key, before, values, who, action)

        done = await audited_transaction(self._app, once)
        (await self._app.resources()).waker.wake()
        return done


async def _locked(conn: Connection, key: GateKey) -> Limit | None:
    if key.org_id != EVERY_ORG:
        await check_org_exists(conn, key.org_id)
    return await gates.lock(conn, key)


async def _write(
    conn: Connection,
    key: GateKey,
    before: Limit | None,
    values: Mapping[str, Any],
    who: ChangeRequest,
    action: str,
) -> Limit:
    if before is None:
        await gates.create(conn, key)
        before = await gates.lock(conn, key) or _unlimited(key)
    await gates.change(conn, key, {**_settable(before), **values})
    after = await gates.read(conn, key)
    assert after is not None
    if after.counts and not before.counts:
        await gates.count_running(conn, key)
        after = await gates.read(conn, key) or after
    await _note(conn, key, before, values, who, action)
    return after


async def _note(
    conn: Connection, key: GateKey, before: Limit, values: Mapping[str, Any], who: ChangeRequest, action: str
) -> None:
    whose = SYSTEM_ORG if key.org_id == EVERY_ORG else key.org_id
    shown = [name for name in values if name in limit_rules.LIMITS]
    detail = {"before": {n: getattr(before, n) for n in shown}, "after": {n: values[n] for n in shown}}
    await record_entry(conn, who, whose, f"limit.{action}", key.name, **(detail if shown else {}))


def _settable(limit: Limit) -> _Values:
    return {name: getattr(limit, name) for name in (*limit_rules.LIMITS, "paused_by", "pause_reason")}


def _unlimited(key: GateKey) -> Limit:
    org_id = None if key.org_id == EVERY_ORG else key.org_id
    return Limit(org_id=org_id, job_type=key.job_type or None)


def _key(org_id: UUID | str | None, job_type: str | None) -> GateKey:
    org, chosen = as_uuid("org_id", org_id), limit_rules.check_type_name(job_type)
    if org is None and chosen is None:
        raise MissingField(
            "missing", field="org_id", fix="name an org, a job type, or both; a queue is paused by itself"
        )
    if org == EVERY_ORG:
        raise ContractError("the zero uuid is no org", field="org_id", fix="leave it out for every org")
    return GateKey(org or EVERY_ORG, chosen or EVERY_TYPE)


def _read_key(org_id: str, job_type: str) -> GateKey:
    return GateKey(UUID(org_id), checked_text("after", job_type or None) or EVERY_TYPE)
