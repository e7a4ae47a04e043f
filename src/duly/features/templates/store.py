"""What orgs say in words of their own, what recipients want to hear, and whom nothing is sent to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.db.pool import Connection
from duly.db.rows import first, rows
from duly.db.statements import statement


class OwnTemplate(BaseModel):
    """Words of an org's own, in one language."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    template_key: str
    locale: str
    subject: str
    body: str
    updated_by: str
    updated_at: datetime


class Preference(BaseModel):
    """What a recipient wants of a template; the empty key stands for all that are not named."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    channel: str
    recipient: str
    template_key: str
    wanted: bool
    updated_by: str
    updated_at: datetime


class Suppression(BaseModel):
    """A recipient to whom nothing is sent, and why."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    channel: str
    recipient: str
    reason: str
    created_by: str
    created_at: datetime


async def find_templates(conn: Connection, org_id: UUID, keys: Collection[str]) -> list[OwnTemplate]:
    """An org's own words of these keys, in all their languages."""
    found = await rows(conn, "templates/find", {"org_id": org_id, "keys": [*keys]})
    return [OwnTemplate.model_validate(row) for row in found]


async def list_templates(
    conn: Connection, org_id: UUID, after: tuple[str, str], *, limit: int
) -> list[OwnTemplate]:
    """The next of an org's own templates, by key and language."""
    values = {"org_id": org_id, "key": after[0], "locale": after[1], "limit": limit}
    return [OwnTemplate.model_validate(row) for row in await rows(conn, "templates/list", values)]


async def count_templates(conn: Connection, org_id: UUID) -> int:
    """How many an org has."""
    [row] = await rows(conn, "templates/count", {"org_id": org_id})
    return int(row["templates"])


async def set_template(conn: Connection, values: Mapping[str, Any]) -> OwnTemplate:
    """Give a template its words."""
    [row] = await rows(conn, "templates/set", values)
    return OwnTemplate.model_validate(row)


async def remove_template(conn: Connection, org_id: UUID, key: str, locale: str) -> OwnTemplate | None:
    """Forget an org's own words; which they were."""
    values = {"org_id": org_id, "template_key": key, "locale": locale}
    row = await first(conn, "templates/remove", values)
    return OwnTemplate.model_validate(row) if row else None


async def preferences(conn: Connection, values: Mapping[str, Any]) -> list[Preference]:
    """What a recipient wants, by template."""
    return [Preference.model_validate(row) for row in await rows(conn, "preferences/list", values)]


async def set_preference(conn: Connection, values: Mapping[str, Any]) -> None:
    """What a recipient wants of a template; None for whatever all others have."""
    verb = "forget" if values["wanted"] is None else "set"
    await conn.execute(statement(f"preferences/{verb}"), values)


async def suppress(conn: Connection, values: Mapping[str, Any]) -> Suppression | None:
    """Send nothing to a recipient any more; None if that was so already."""
    row = await first(conn, "suppressions/add", values)
    return Suppression.model_validate(row) if row else None


async def suppression(conn: Connection, values: Mapping[str, Any]) -> Suppression | None:
    """Why nothing is sent to a recipient, if so."""
    row = await first(conn, "suppressions/read", values)
    return Suppression.model_validate(row) if row else None


async def list_suppressions(
    conn: Connection, org_id: UUID, after: tuple[str, str], *, limit: int
) -> list[Suppression]:
    """The next recipients to whom an org sends nothing."""
    values = {"org_id": org_id, "channel": after[0], "recipient": after[1], "limit": limit}
    return [Suppression.model_validate(row) for row in await rows(conn, "suppressions/list", values)]


async def unsuppress(conn: Connection, values: Mapping[str, Any]) -> Suppression | None:
    """Send to a recipient again; None if that was so already."""
    row = await first(conn, "suppressions/remove", values)
    return Suppression.model_validate(row) if row else None
