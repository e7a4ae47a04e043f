"""Lines that handlers logged about their jobs."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.rows import class_row

from duly.store.pool import Connection
from duly.store.statements import statement

REFUSED = 2**31 - 1
"""The number of the line that says that an attempt came too late: the last there can be."""


class Line(NamedTuple):
    """One line to be kept."""

    org_id: UUID
    job_id: UUID
    attempt: int
    line_seq: int
    at: float
    """By the monotonic clock of this machine; the database makes a time of it by its own."""
    level: str
    message: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line as it was kept."""

    attempt: int
    line_seq: int
    logged_at: datetime
    level: str
    message: str
    fields: dict[str, Any] = field(hash=False)


class Position(NamedTuple):
    """A line by its number."""

    attempt: int = 0
    line_seq: int = 0


async def keep(conn: Connection, lines: Sequence[Line]) -> None:
    """Write the lines of many jobs; those that are there already stay as they are."""
    now = time.monotonic()
    rows = [
        {
            "org_id": str(line.org_id),
            "job_id": str(line.job_id),
            "attempt": line.attempt,
            "line_seq": line.line_seq,
            "age": now - line.at,
            "level": line.level,
            "message": line.message,
            "fields": line.fields or None,
        }
        for line in lines
    ]
    await conn.execute(statement("job_logs/keep"), {"lines": json.dumps(rows, allow_nan=False)})


async def read(
    conn: Connection, org_id: UUID, job_id: UUID, after: Position, *, attempt: int | None, limit: int
) -> list[LogLine]:
    """The next lines of a job in their order, attempt by attempt, or of one attempt alone."""
    asked = {"org_id": org_id, "job_id": job_id, "attempt": attempt, "limit": limit}
    async with conn.cursor(row_factory=class_row(LogLine)) as cursor:
        await cursor.execute(
            statement("job_logs/read"),
            {**asked, "after_attempt": after.attempt, "after_seq": after.line_seq},
        )
        return await cursor.fetchall()
