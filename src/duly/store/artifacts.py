"""Files that jobs leave behind: the row; the bytes lie in the blobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

from duly.store.claims import ClaimedJob
from duly.store.pool import Connection
from duly.store.statements import statement


@dataclass(frozen=True, slots=True)
class Artifact:
    """A stored file of a job."""

    artifact_id: UUID
    name: str
    content_type: str
    blob_ref: str
    sha256: str
    size: int


async def keep(
    conn: Connection, job: ClaimedJob, file: Artifact, *, keep_for: timedelta | None
) -> Artifact | None:
    """Write down a file of a held job; the same name replaces. None if the job is no longer ours."""
    values = {name: getattr(file, name) for name in Artifact.__dataclass_fields__}
    cursor = await conn.execute(statement("artifacts/keep"), {**job.fence, **values, "keep_for": keep_for})
    row = await cursor.fetchone()
    return None if row is None else Artifact(row[0], *list(values.values())[1:])


async def of_job(conn: Connection, org_id: UUID, job_id: UUID) -> list[Artifact]:
    """The files of a job, by name."""
    cursor = await conn.execute(statement("artifacts/list"), {"org_id": org_id, "job_id": job_id})
    return [Artifact(*row) for row in await cursor.fetchall()]


def described(name: str, content_type: str, blob_ref: str, sha256: str, size: int) -> Artifact:
    """A file that is not written down yet."""
    return Artifact(uuid4(), name, content_type, blob_ref, sha256, size)
