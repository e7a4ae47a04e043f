"""What the engine must know before it works: orgs, projects and job types."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from duly.store.pool import Connection
from duly.store.statements import statement


async def create_org(conn: Connection, org_id: UUID, name: str) -> str | None:
    """Make an org known, or give it this name; the name that it had before, if it was known."""
    cursor = await conn.execute(statement("orgs/create"), {"org_id": org_id, "name": name})
    row = await cursor.fetchone()
    assert row is not None
    return None if row[0] is None else str(row[0])


async def list_orgs(conn: Connection, after: UUID, *, limit: int) -> list[tuple[UUID, datetime]]:
    """The next orgs in the order of their ids, each with the time it was looked for."""
    cursor = await conn.execute(statement("orgs/list"), {"after": after, "limit": limit})
    return [(row[0], row[1]) for row in await cursor.fetchall()]


async def create_project(conn: Connection, org_id: UUID, project_id: UUID, name: str) -> None:
    """Make a project of an org known."""
    await conn.execute(
        statement("orgs/create_project"), {"org_id": org_id, "project_id": project_id, "name": name}
    )


async def publish_job_types(conn: Connection, job_types: Sequence[dict[str, Any]]) -> None:
    """Make job types known: each with `job_type`, `policy` and `payload_schema`."""
    await conn.execute(statement("job_types/publish"), {"job_types": json.dumps(job_types)})
