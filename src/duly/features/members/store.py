"""Statements on the members of orgs."""

from __future__ import annotations

from uuid import UUID

from duly.core.principal import Role
from duly.db.pool import Connection
from duly.db.rows import first, read_all, read_first, rows
from duly.features.members.models import Member


async def read_member(conn: Connection, org_id: UUID, user_id: str) -> Member | None:
    """Read a member of an org."""
    return await read_first(conn, Member, "members/read", {"org_id": org_id, "user_id": user_id})


async def set_member(conn: Connection, org_id: UUID, user_id: str, role: Role) -> Member:
    """Add a member, or change the role of one."""
    [changed] = await read_all(
        conn, Member, "members/set", {"org_id": org_id, "user_id": user_id, "role": role}
    )
    return changed


async def remove_member(conn: Connection, org_id: UUID, user_id: str) -> Member | None:
    """Remove a member; return the removed row."""
    return await read_first(conn, Member, "members/remove", {"org_id": org_id, "user_id": user_id})


async def list_members(conn: Connection, org_id: UUID, after: str, *, limit: int) -> list[Member]:
    """Return the members of an org after a user id, by user id."""
    return await read_all(conn, Member, "members/list", {"org_id": org_id, "after": after, "limit": limit})


async def list_admins(conn: Connection, org_id: UUID, *, limit: int) -> list[str]:
    """Return the user ids of an org's admins."""
    found = await rows(conn, "members/list_admins", {"org_id": org_id, "limit": limit})
    return [row["user_id"] for row in found]


async def read_role(conn: Connection, org_id: UUID, user_id: str) -> Role | None:
    """Read the role of a member of an active org."""
    row = await first(conn, "members/read_role", {"org_id": org_id, "user_id": user_id})
    return Role(row["role"]) if row else None
