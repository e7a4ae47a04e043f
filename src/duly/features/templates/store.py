"""Statements on the templates of orgs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from duly.db.pool import Connection
from duly.db.rows import read_all, read_first, rows
from duly.features.templates.models import OrgTemplate


async def find_templates(conn: Connection, org_id: UUID, keys: Collection[str]) -> list[OrgTemplate]:
    """Return the templates of an org with these keys, in all locales."""
    return await read_all(conn, OrgTemplate, "templates/find", {"org_id": org_id, "keys": [*keys]})


async def list_templates(
    conn: Connection, org_id: UUID, after: tuple[str, str], *, limit: int
) -> list[OrgTemplate]:
    """Return the templates of an org after a key and locale, by key and locale."""
    values = {"org_id": org_id, "key": after[0], "locale": after[1], "limit": limit}
    return await read_all(conn, OrgTemplate, "templates/list", values)


async def count_templates(conn: Connection, org_id: UUID) -> int:
    """Count the templates of an org."""
    [row] = await rows(conn, "templates/count", {"org_id": org_id})
    return int(row["templates"])


async def set_template(conn: Connection, values: Mapping[str, Any]) -> OrgTemplate:
    """Create or replace a template."""
    [changed] = await read_all(conn, OrgTemplate, "templates/set", values)
    return changed


async def remove_template(conn: Connection, org_id: UUID, key: str, locale: str) -> OrgTemplate | None:
    """Remove a template; return the removed row."""
    values = {"org_id": org_id, "template_key": key, "locale": locale}
    return await read_first(conn, OrgTemplate, "templates/remove", values)
