"""Members of orgs and what they are there. Each change is audited in its transaction."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from duly.core.errors import ContractError, UnknownMember
from duly.core.job import SYSTEM_ORG, Actor
from duly.core.principal import Role
from duly.db.pool import Connection
from duly.features.api_keys import store as access
from duly.features.api_keys.store import Member
from duly.features.arguments import check_org_exists, org_uuid, required_text
from duly.features.audit.entries import audited_transaction, change_request, record_entry
from duly.features.orgs.service import locked
from duly.features.pagination import decode_cursor, page_size, split_page, text_cursor
from duly.features.subscriptions import store as subscriptions
from duly.jobs.application import App

__all__ = ["Member", "MemberPage", "Members"]


@dataclass(frozen=True, slots=True)
class MemberPage:
    """Some members; `after` asks for those that follow, and is None at the end."""

    members: tuple[Member, ...]
    after: str | None


class Members:
    """The members of the orgs of an application."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def set(
        self, org_id: UUID | str, user_id: str, role: Role | str, *, actor: Actor, reason: str
    ) -> Member:
        """Make somebody a member, or change their role. Asked again, it changes nothing."""
        whose, which, what, who = (
            org_uuid(org_id),
            required_text("user_id", user_id),
            _role(role),
            change_request(actor, reason),
        )
        if whose == SYSTEM_ORG:
            raise ContractError("this org has no members", field="org_id", fix="make a key of it instead")

        async def change(conn: Connection) -> Member:
            await locked(conn, whose)
            before = await access.read_member(conn, whose, which)
            if before is not None and before.role is what:
                return before
            detail = {"role": what, "before": before.role if before else None}
            await record_entry(conn, who, whose, "member.set", which, **detail)
            return await access.set_member(conn, whose, which, what)

        return await audited_transaction(self._app, change)

    async def remove(self, org_id: UUID | str, user_id: str, *, actor: Actor, reason: str) -> Member:
        """End a membership, and what they are told in the product; an unknown member raises."""
        whose, which, who = org_uuid(org_id), required_text("user_id", user_id), change_request(actor, reason)

        async def change(conn: Connection) -> Member:
            gone = _found(await access.remove_member(conn, whose, which), which)
            await subscriptions.end_of(conn, whose, which)
            await record_entry(conn, who, whose, "member.removed", which, role=gone.role)
            return gone

        return await audited_transaction(self._app, change)

    async def get(self, org_id: UUID | str, user_id: str) -> Member:
        """One member; somebody who does not belong to the org raises."""
        whose, which = org_uuid(org_id), required_text("user_id", user_id)
        async with self._app.tenant_session(whose) as conn:
            return _found(await access.read_member(conn, whose, which), which)

    async def list(self, org_id: UUID | str, *, limit: int = 50, after: str | None = None) -> MemberPage:
        """The members of an org, by their ids; an unknown org raises."""
        whose, size, start = org_uuid(org_id), page_size(limit), decode_cursor(after, text_cursor) or ""
        async with self._app.tenant_session(whose) as conn:
            found = await access.list_members(conn, whose, start, limit=size + 1)
            if not found:
                await check_org_exists(conn, whose)
        return MemberPage(*split_page(found, size, lambda last: last.user_id))

    async def role_of(self, org_id: UUID | str, user_id: str) -> Role | None:
        """What somebody is in an active org; None if they do not belong to it, or it is suspended."""
        whose, which = org_uuid(org_id), required_text("user_id", user_id)
        async with self._app.tenant_session(whose) as conn:
            return await access.role_of(conn, whose, which)


def _found(member: Member | None, user_id: str) -> Member:
    if member is None:
        raise UnknownMember(
            f"no member {user_id} in this org", field="user_id", fix="check the id and the org"
        )
    return member


def _role(role: Role | str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise ContractError(f"{role!r} is no role", field="role", fix=f"one of {', '.join(Role)}") from None
