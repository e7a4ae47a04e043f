"""What a job left behind: its events and its final result."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from duly.model.job import JobEvent
from duly.store.pool import Connection
from duly.store.statements import statement

_PAGE = 500


async def events_after(conn: Connection, org_id: UUID, job_id: UUID, seq: int) -> list[JobEvent]:
    """The next events of a job, oldest first, a page at most."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            statement("events/read_after"),
            {"org_id": org_id, "job_id": job_id, "after_seq": seq, "limit": _PAGE},
        )
        return [JobEvent.model_validate(row) async for row in cursor]


async def final_result(conn: Connection, org_id: UUID, job_id: UUID) -> tuple[Any, str | None] | None:
    """Payload and blob reference of the final snapshot, if there is one."""
    cursor = await conn.execute(statement("results/read_final"), {"org_id": org_id, "job_id": job_id})
    row = await cursor.fetchone()
    return (row[0], row[1]) if row else None
