"""Audited changes: the actor and reason of a change, its transaction, and the audit entry written with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from duly.core.errors import MissingField
from duly.core.job import Actor
from duly.db.database import retry_transaction
from duly.db.pool import Connection
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.request_context import checked_actor, checked_text, current_context

T = TypeVar("T")
OWN_TARGETS = frozenset({
    "dead_letter", "job", "key", "limit", "member", "notification", "org", "project", "queue", "record",
    "result", "schedule", "session", "suppression", "template", "webhook", "worker",
})  # fmt: skip
"""The target types of Duly's entries: the first word of their actions. Applications use other words."""


class ChangeRequest(NamedTuple):
    """The actor and the reason of a change."""

    actor: Actor
    reason: str | None

    @property
    def by(self) -> str:
        """The actor as a text, for a column."""
        return f"{self.actor.type}:{self.actor.id}"


def change_request(actor: Actor, reason: str | None, *, optional: bool = False) -> ChangeRequest:
    """Return the checked actor and reason; raise if one is missing. With `optional`, the reason may be."""
    if checked_actor(actor) is None:
        raise MissingField("missing", field="actor", fix="pass Actor.user(...), .api_key or .system")
    if reason is None and not optional:
        raise MissingField("missing", field="reason", fix="pass a reason for the audit trail")
    return ChangeRequest(actor, checked_text("reason", reason))


async def audited_transaction(app: App, work: Callable[[Connection], Awaitable[T]]) -> T:
    """Run `work` in one transaction of the engine; repeat all of it after a serialization failure."""

    async def once() -> T:
        async with (await app.resources()).database.engine() as conn:
            return await work(conn)

    return await retry_transaction(once)


async def change_under_lock(
    app: App,
    lock: Callable[[Connection], Awaitable[T]],
    changed_fields: Callable[[T], Mapping[str, Any]],
    save: Callable[[Connection, T, Mapping[str, Any]], Awaitable[T]],
) -> T:
    """Lock a resource and save the fields that change, with their audit entry, in one transaction.

    Without a changed field the resource stays as it is, and no entry is written.
    """

    async def change(conn: Connection) -> T:
        current = await lock(conn)
        values = changed_fields(current)
        return await save(conn, current, values) if values else current

    return await audited_transaction(app, change)


async def record_entry(
    conn: Connection, request: ChangeRequest, org_id: UUID, action: str, target_id: str, /, **detail: Any
) -> None:
    """Write a change to the audit trail of an org. The first word of the action is the type of the target."""
    context = current_context()
    await job_store.record_audit_entry(
        conn,
        org_id=org_id,
        actor=request.actor,
        action=action,
        target_type=action.partition(".")[0],
        target_id=target_id,
        reason=request.reason,
        request_id=context.request_id,
        correlation_id=context.correlation_id or context.request_id,
        detail=detail,
    )
