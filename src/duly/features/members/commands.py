"""`duly members`."""

from __future__ import annotations

from typing import Annotated

from duly.app import Duly
from duly.cli.command import Group
from duly.cli.options import Change, Org, Paging, argument
from duly.cli.output import Output, columns
from duly.core.principal import Role
from duly.features.members.models import Member
from duly.features.members.service import MemberPage

members = Group("members", "Manage the members of an org.")
UserId = Annotated[str, argument("Select the user by the `sub` of their tokens.")]


@members.command("list", columns=columns("user_id", "role", "created_at"))
async def list_members(duly: Duly, org: Org, paging: Paging) -> MemberPage:
    """List the members of an org by user id."""
    return await duly.members.list(org, **paging)


@members.command("set")
async def set_role(
    duly: Duly, user_id: UserId, role: Annotated[Role, argument("Set the role.")], org: Org, change: Change
) -> Member:
    """Add a member to an org, or change their role."""
    return await duly.members.set(org, user_id, role, **change)


@members.command()
async def remove(duly: Duly, user_id: UserId, org: Org, change: Change) -> Output:
    """Remove a member from an org."""
    return Output(await duly.members.remove(org, user_id, **change), "removed")
