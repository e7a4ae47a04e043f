"""Statements on limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from duly.db.pool import Connection
from duly.db.rows import read_all, read_first
from duly.db.statements import statement
from duly.features.limits.models import Limit, LimitKey


async def read_limit(conn: Connection, key: LimitKey) -> Limit | None:
    """Read a limit; None if it was never set."""
    return await read_first(conn, Limit, "limits/read", key._asdict())


async def lock_limit(conn: Connection, key: LimitKey) -> Limit | None:
    """Lock a limit for a change; claims and settlements of its jobs wait meanwhile."""
    return await read_first(conn, Limit, "limits/lock", key._asdict())


async def create_limit(conn: Connection, key: LimitKey) -> None:
    """Create a limit without values, if it is missing. From then on its job type has a lane of its own."""
    await conn.execute(statement("limits/create"), key._asdict())


async def change_limit(conn: Connection, key: LimitKey, values: Mapping[str, Any]) -> None:
    """Write the values of a locked limit."""
    await conn.execute(statement("limits/change"), {**key._asdict(), **values})


async def count_running(conn: Connection, key: LimitKey) -> None:
    """Count the jobs that run already, for a locked limit that starts to count."""
    await conn.execute(statement("limits/leave_plain_path"), {"org_id": key.org_id, "job_type": key.job_type})
    await conn.execute(statement("limits/count_running"), {**key._asdict(), "bit": key.bit})


async def list_limits(
    conn: Connection, after: LimitKey, *, org_id: UUID | None, job_type: str | None, limit: int
) -> list[Limit]:
    """Return the limits after a key, by key; of one org or one job type if named."""
    values = {"after_org": after.org_id, "after_type": after.job_type, "org_id": org_id}
    return await read_all(conn, Limit, "limits/list", {**values, "job_type": job_type, "limit": limit})
