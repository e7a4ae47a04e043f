"""What a job was given, wherever it lies."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from psycopg.rows import scalar_row

from duly.blobs import BlobRef
from duly.model.job import JobSnapshot
from duly.store.pool import Connection
from duly.store.statements import statement

if TYPE_CHECKING:
    from duly.client.app import App


async def payload_of(app: App, conn: Connection, job: JobSnapshot) -> dict[str, Any]:
    """The payload: from its row, or from the blobs if it is large."""
    if job.request_payload_ref is not None:
        blobs = (await app.ground()).blobs
        found = await blobs.get(BlobRef.parse(job.request_payload_ref), org_id=job.org_id)
        loaded: dict[str, Any] = json.loads(found)
        return loaded
    async with conn.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute(statement("jobs/read_payload"), {"org_id": job.org_id, "job_id": job.job_id})
        inline: dict[str, Any] = await cursor.fetchone() or {}
        return inline
