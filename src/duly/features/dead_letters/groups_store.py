"""Open dead letters by what went wrong, at a price that does not depend on how many there are."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.db.pool import Connection
from duly.db.rows import rows
from duly.features.pagination import Count, capped_count

_STEPS, _LOOK = 1_000, 200


class ErrorKind(BaseModel):
    """The open letters of one kind at a glance; the message is the latest one's."""

    model_config = ConfigDict(frozen=True)

    fingerprint: str
    org_id: UUID
    job_id: UUID
    """The latest one, and whose it is."""
    job_type: str
    error_code: str
    error_class: str
    error_message: str
    letters: Count
    orgs: int
    """How many orgs the latest 200 are of."""
    org_name: str | None = None
    """What the org of the latest one is called; of one's own org that needs no telling."""
    first_dead_at: datetime
    last_dead_at: datetime


async def kinds(conn: Connection, org_id: UUID | None, *, limit: int, most: int) -> list[ErrorKind]:
    """The latest kinds: of an org, on its session, or of all orgs, on the engine's."""
    name = "dead_letters/kinds" if org_id is None else "dead_letters/group"
    values = {"org_id": org_id, "kinds": _STEPS, "look": _LOOK, "limit": limit, "most": most}
    return [
        ErrorKind.model_validate({**row, "letters": capped_count(row["letters"], most)})
        for row in await rows(conn, name, values)
    ]
