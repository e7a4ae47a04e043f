"""Changes that are audited: the transaction they are made in, and the entry that is written with them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import UUID

from duly.db.database import retry_transaction
from duly.db.pool import Connection
from duly.features.audit.change_request import ChangeRequest
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.request_context import current_context

T = TypeVar("T")
OWN_TARGETS = frozenset({
    "dead_letter", "job", "key", "limit", "member", "notification", "org", "project", "queue", "record",
    "result", "schedule", "session", "suppression", "template", "webhook", "worker",
})  # fmt: skip
"""What Duly itself writes about: the first words of all actions that are not an application's own."""


async def audited_transaction(app: App, work: Callable[[Connection], Awaitable[T]]) -> T:
    """Do it in one transaction of the engine; all of it again when PostgreSQL says that this helps."""

    async def once() -> T:
        async with (await app.resources()).database.engine() as conn:
            return await work(conn)

    return await retry_transaction(once)


async def record_entry(
    conn: Connection, who: ChangeRequest, org_id: UUID, action: str, target_id: str, /, **detail: Any
) -> None:
    """Write a change into the audit trail of an org. The first word of the action says what was changed."""
    here = current_context()
    await job_store.record_audit_entry(
        conn,
        org_id=org_id,
        actor=who.actor,
        action=action,
        target_type=action.partition(".")[0],
        target_id=target_id,
        reason=who.reason,
        request_id=here.request_id,
        correlation_id=here.correlation_id or here.request_id,
        detail=detail,
    )
