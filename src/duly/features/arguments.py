"""Check the arguments that many services share: org ids, texts and counts."""

from __future__ import annotations

from uuid import UUID

from duly.core.errors import ContractError, MissingField, UnknownOrg
from duly.db.pool import Connection
from duly.db.statements import statement
from duly.jobs.request_context import as_uuid, checked_text

_MAX_COUNT = 1000


def org_uuid(org_id: UUID | str) -> UUID:
    """Return the id of an org, or parse it from its text."""
    parsed = as_uuid("org_id", org_id)
    if parsed is None:
        raise MissingField("missing", field="org_id", fix="pass the id of the org")
    return parsed


async def check_org_exists(conn: Connection, org_id: UUID) -> None:
    """Raise if there is no such org, active or suspended. Services call it when they found no rows."""
    cursor = await conn.execute(statement("orgs/find"), {"org_id": org_id})
    if await cursor.fetchone() is None:
        raise unknown_org(org_id)


def unknown_org(org_id: UUID) -> UnknownOrg:
    """Return the error for an org that does not exist."""
    return UnknownOrg(f"no org {org_id}", field="org_id", fix="check the id, or create the org first")


def required_text(field: str, value: str) -> str:
    """Return a short text that PostgreSQL can store; raise if it is missing."""
    text = checked_text(field, value)
    if text is None:
        raise MissingField("missing", field=field, fix=f"pass {field}")
    return text


def checked_count(n: int) -> int:
    """Return the number of requested items; raise if it is out of range."""
    if type(n) is not int or not 0 < n <= _MAX_COUNT:
        raise ContractError(f"{n!r} is out of range", field="n", fix=f"use 1 to {_MAX_COUNT}")
    return n
