"""The audit trail: who changed what, when and why. Written with the change, and never again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from duly.model.job import Actor
from duly.store.pool import Connection
from duly.store.statements import statement


async def record(
    conn: Connection,
    *,
    org_id: UUID,
    actor: Actor,
    action: str,
    target_type: str,
    target_id: str,
    reason: str | None = None,
    request_id: str | None = None,
    correlation_id: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Note one change, on the engine session that makes it."""
    await conn.execute(
        statement("audit/record"),
        {
            "org_id": org_id,
            "actor_type": actor.type,
            "actor_id": actor.id,
            "action": action,
            "target_type": target_type,
            "target_id": target_id,
            "reason": reason,
            "request_id": request_id,
            "correlation_id": correlation_id,
            "detail": Jsonb(dict(detail or {})),
        },
    )
