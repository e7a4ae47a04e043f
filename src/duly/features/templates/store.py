"""Statements on the templates of orgs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from duly.db.pool import Connection
from duly.db.rows import first, rows
from duly.features.templates.models import OrgTemplate


async def find_templates(conn: Connection, org_id: UUID, keys: Collection[str]) -> list[OrgTemplate]:
    """Return the templates of an org with these keys, in all locales."""
    found = await rows(conn, "templates/find", {"org_id": org_id, "keys": [*keys]})
    return [OrgTemplate.model_validate(row) for row in found]


async def list_templates(
    conn: Connection, org_id: UUID, after: tuple[str, str], *, limit: int
) -> list[OrgTemplate]:
    """Return the templates of an org after a key and locale, by key and locale."""
    values = {"org_id": org_id, "key": after[0], "locale": after[1], "limit": limit}
    return [OrgTemplate.model_validate(row) for row in await rows(conn, "templates/list", values)]


async def count_templates(conn: Connection, org_id: UUID) -> int:
    """Count the templates of an org."""
    [row] = await rows(conn, "templates/count", {"org_id": org_id})
    return int(row["templates"])


async def set_template(conn: Connection, values: Mapping[str, Any]) -> OrgTemplate:
    """Create or replace a template."""
    [row] = await rows(conn, "templates/set", values)
    return OrgTemplate.model_validate(row)


async def remove_template(conn: Connection, org_id: UUID, key: str, locale: str) -> OrgTemplate | None:
    """Remove a template; return the removed row."""
    values = {"org_id": org_id, "template_key": key, "locale": locale}
    row = await first(conn, "templates/remove", values)
    return OrgTemplate.model_validate(row) if row else None
