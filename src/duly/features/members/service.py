"""The members of orgs and their roles. Each change is audited in its transaction."""

from __future__ import annotations

from uuid import UUID

from duly.core.errors import ContractError, UnknownMember
from duly.core.job import SYSTEM_ORG, Actor
from duly.core.principal import Role
from duly.db.pool import Connection
from duly.features.arguments import org_uuid, require, required_text
from duly.features.audit.entries import audited_transaction, change_request, record_entry
from duly.features.members import store
from duly.features.members.models import Member, MemberPage
from duly.features.members.store import list_admins
from duly.features.orgs.service import lock_org
from duly.features.pagination import decode_cursor, read_org_page, text_cursor
from duly.features.subscriptions.service import delete_of_user
from duly.jobs.application import App

__all__ = ["Member", "MemberPage", "Members", "list_admins"]


class Members:
    """The members of the orgs of an application."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def set(
        self, org_id: UUID | str, user_id: str, role: Role | str, *, actor: Actor, reason: str
    ) -> Member:
        """Add a member, or change the role of one. Idempotent."""
        org, user, new_role = org_uuid(org_id), required_text("user_id", user_id), _checked_role(role)
        request = change_request(actor, reason)
        if org == SYSTEM_ORG:
            raise ContractError("this org has no members", field="org_id", fix="create an API key for it")

        async def change(conn: Connection) -> Member:
            await lock_org(conn, org)
            current = await store.read_member(conn, org, user)
            if current is not None and current.role is new_role:
                return current
            detail = {"role": new_role, "before": current.role if current else None}
            await record_entry(conn, request, org, "member.set", user, **detail)
            return await store.set_member(conn, org, user, new_role)

        return await audited_transaction(self._app, change)

    async def remove(self, org_id: UUID | str, user_id: str, *, actor: Actor, reason: str) -> Member:
        """Remove a member and the in-app subscriptions to them; an unknown member raises."""
        org, user = org_uuid(org_id), required_text("user_id", user_id)
        request = change_request(actor, reason)

        async def change(conn: Connection) -> Member:
            removed = _require_member(await store.remove_member(conn, org, user), user)
            await delete_of_user(conn, org, user)
            await record_entry(conn, request, org, "member.removed", user, role=removed.role)
            return removed

        return await audited_transaction(self._app, change)

    async def get(self, org_id: UUID | str, user_id: str) -> Member:
        """Return a member; an unknown one raises."""
        org, user = org_uuid(org_id), required_text("user_id", user_id)
        async with self._app.tenant_session(org) as conn:
            return _require_member(await store.read_member(conn, org, user), user)

    async def list(self, org_id: UUID | str, *, limit: int = 50, after: str | None = None) -> MemberPage:
        """Return the members of an org by user id; an unknown org raises."""
        org, start = org_uuid(org_id), decode_cursor(after, text_cursor) or ""
        page = await read_org_page(
            self._app,
            org,
            lambda conn, count: store.list_members(conn, org, start, limit=count),
            lambda last: last.user_id,
            limit=limit,
        )
        return MemberPage(*page)

    async def role_of(self, org_id: UUID | str, user_id: str) -> Role | None:
        """Return the role of a user in an org; None if they are no member, or the org is suspended."""
        org, user = org_uuid(org_id), required_text("user_id", user_id)
        async with self._app.tenant_session(org) as conn:
            return await store.read_role(conn, org, user)


def _require_member(member: Member | None, user_id: str) -> Member:
    return require(member, UnknownMember, f"member {user_id}", field="user_id")


def _checked_role(role: Role | str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise ContractError(
            f"{role!r} is not a role", field="role", fix=f"use one of {', '.join(Role)}"
        ) from None
