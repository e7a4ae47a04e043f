"""Results under their permalinks: snapshots of what a job has brought so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from duly.store.pool import Connection
from duly.store.rows import first, rows

Kind = Literal["partial", "final"]


@dataclass(frozen=True, slots=True)
class Kept:
    """A snapshot as it is stored: with its value, or where that lies."""

    result_kind: Kind
    result_seq: int
    chunk_key: str | None
    created_at: datetime
    payload: Any = None
    payload_ref: str | None = None
    large: bool = False
    """Whether the value was left where it is."""
    summary: dict[str, Any] | None = field(default=None, hash=False)


async def find(conn: Connection, org_id: UUID, result_id: UUID) -> UUID | None:
    """The job behind a permalink."""
    row = await first(conn, "results/find", {"org_id": org_id, "result_id": result_id})
    return row["job_id"] if row else None


async def read(conn: Connection, org_id: UUID, job_id: UUID, seq: int) -> Kept | None:
    """One snapshot of a job, if it is kept."""
    row = await first(conn, "results/read", {"org_id": org_id, "job_id": job_id, "seq": seq})
    return Kept(**row) if row else None


async def after(
    conn: Connection, org_id: UUID, job_id: UUID, seq: int, *, limit: int, size: int
) -> list[Kept]:
    """The next snapshots of a job; values that are large, or too many bytes together, are left out."""
    values = {"org_id": org_id, "job_id": job_id, "after": seq, "limit": limit, "bytes": size}
    return [Kept(**row) for row in await rows(conn, "results/list", values)]


async def erase(conn: Connection, org_id: UUID, subject_id: str) -> tuple[int, int]:
    """Forget what ended jobs about a subject brought; how many snapshots and files that were."""
    row = await first(conn, "results/erase", {"org_id": org_id, "subject_id": subject_id})
    assert row is not None
    return row["snapshots"], row["files"]
