"""What a job left behind: its events and its final result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import class_row, dict_row

from duly.model.job import JobEvent
from duly.model.states import Status
from duly.store.pool import Connection
from duly.store.statements import statement

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A stored partial result; its value, or where that lies."""

    result_seq: int
    chunk_key: str | None
    payload: Any
    payload_ref: str | None
    created_at: datetime


async def events_after(conn: Connection, org_id: UUID, job_id: UUID, seq: int) -> list[JobEvent]:
    """The next events of a job, oldest first, a page at most."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            statement("events/read_after"),
            {"org_id": org_id, "job_id": job_id, "after_seq": seq, "limit": _PAGE},
        )
        return [JobEvent.model_validate(row) async for row in cursor]


async def partial_results(conn: Connection, org_id: UUID, job_id: UUID) -> list[Snapshot]:
    """The partial snapshots of a job, oldest first."""
    async with conn.cursor(row_factory=class_row(Snapshot)) as cursor:
        await cursor.execute(statement("results/read_partials"), {"org_id": org_id, "job_id": job_id})
        return await cursor.fetchall()


async def final_result(conn: Connection, org_id: UUID, job_id: UUID) -> tuple[Any, str | None] | None:
    """Payload and blob reference of the final snapshot, if there is one."""
    cursor = await conn.execute(statement("results/read_final"), {"org_id": org_id, "job_id": job_id})
    row = await cursor.fetchone()
    return (row[0], row[1]) if row else None


async def heads(conn: Connection, keys: Sequence[tuple[UUID, UUID]]) -> list[tuple[int, Status]]:
    """How far each of these jobs is: the number of its last event, and its status."""
    values = {"org_ids": [org for org, _ in keys], "job_ids": [job for _, job in keys]}
    rows = await (await conn.execute(statement("events/heads"), values)).fetchall()
    found = {row[0]: (row[1], Status(row[2])) for row in rows}
    return [found[place] for place in range(1, len(keys) + 1)]
