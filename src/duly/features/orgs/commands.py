"""`duly orgs`."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID, uuid4

import typer

from duly.app import Duly
from duly.cli.command import Group
from duly.cli.options import ActorOption, Change, Depends, OptionalReason, Paging, argument
from duly.cli.output import Output, columns
from duly.features.orgs.models import Org, OrgPage
from duly.jobs.request_context import checked_text

orgs = Group("orgs", "Manage orgs.")
# Not from DULY_ORG: the org of a change must be explicit.
OrgId = Annotated[UUID, argument("Select the org by its id.")]


def _name(name: Annotated[str, argument("Set the name of the org.")]) -> str:
    return checked_text("name", name) or ""


@orgs.command()
async def create(
    duly: Duly,
    name: Annotated[str, Depends(_name)],
    actor: ActorOption,
    org_id: Annotated[
        UUID | None, typer.Option("--id", help="Set the id of the org.", show_default="a new one")
    ] = None,
    reason: OptionalReason = None,
) -> Output:
    """Create an org, or rename it if it exists, and print its id."""
    created = org_id or uuid4()
    await duly.create_org(created, name, actor=actor, reason=checked_text("reason", reason))
    return Output({"org_id": created, "name": name}, str(created))


@orgs.command("list", columns=columns("org_id", "name", "status", "created_at"))
async def list_orgs(duly: Duly, paging: Paging) -> OrgPage:
    """List all orgs by id."""
    return await duly.orgs.list(**paging)


@orgs.command()
async def show(duly: Duly, org_id: OrgId) -> Org:
    """Show an org."""
    return await duly.orgs.get(org_id)


@orgs.command()
async def suspend(duly: Duly, org_id: OrgId, change: Change) -> Org:
    """Suspend an org: refuse new jobs, keys and members; queued jobs run."""
    return await duly.orgs.suspend(org_id, **change)


@orgs.command()
async def resume(duly: Duly, org_id: OrgId, change: Change) -> Org:
    """Resume a suspended org."""
    return await duly.orgs.resume(org_id, **change)
