"""`duly org`."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID, uuid4

import typer

from duly.cli.application import run
from duly.cli.options import ActorName, After, AppName, AsJson, Reason, Size, acting
from duly.cli.show import Columns, print_facts, print_json, print_table
from duly.client.context import checked_text
from duly.store.orgs import Org

group = typer.Typer(help="Orgs: whom the work is for.", no_args_is_help=True, rich_markup_mode=None)
# Not from DULY_ORG: which one is meant must be said.
OrgId = Annotated[UUID, typer.Argument(help="The org.", show_default=False)]

_COLUMNS: Columns = {"org": "org_id", "name": "name", "status": "status", "created": "created_at"}
_FACTS = ("org_id", "name", "status", "created_at", "updated_at")


@group.command()
def create(
    name: Annotated[str, typer.Argument(help="What the org is called.", show_default=False)],
    org_id: Annotated[UUID | None, typer.Option("--id", help="Its id; a new one if left out.")] = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; kept in the audit trail.")] = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Make an org known; one that is known gets the name. Prints its id."""
    made, called, why = org_id or uuid4(), checked_text("name", name) or "", checked_text("reason", reason)
    run(app, lambda duly: duly.create_org(made, called, actor=acting(actor), reason=why))
    print_json({"org_id": made, "name": called}) if as_json else print(made)


@group.command("list")
def list_orgs(limit: Size = 50, after: After = None, app: AppName = None, as_json: AsJson = False) -> None:
    """Every org, by its id."""
    page = run(app, lambda duly: duly.orgs.list(limit=limit, after=after))
    print_json(page) if as_json else print_table(page.orgs, _COLUMNS, after=page.after)


@group.command()
def show(org_id: OrgId, app: AppName = None, as_json: AsJson = False) -> None:
    """One org."""
    _show(run(app, lambda duly: duly.orgs.get(org_id)), as_json)


@group.command()
def suspend(
    org_id: OrgId, reason: Reason, actor: ActorName = None, app: AppName = None, as_json: AsJson = False
) -> None:
    """Take no new jobs from it and believe none of its keys and members; what it has waiting goes on."""
    _show(run(app, lambda duly: duly.orgs.suspend(org_id, actor=acting(actor), reason=reason)), as_json)


@group.command()
def resume(
    org_id: OrgId, reason: Reason, actor: ActorName = None, app: AppName = None, as_json: AsJson = False
) -> None:
    """Let it work again."""
    _show(run(app, lambda duly: duly.orgs.resume(org_id, actor=acting(actor), reason=reason)), as_json)


def _show(org: Org, as_json: bool) -> None:
    print_json(org) if as_json else print_facts(org, _FACTS)
