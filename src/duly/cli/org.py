"""`duly org`."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID, uuid4

import typer

from duly.cli.application import run
from duly.cli.options import AppName, AsJson
from duly.cli.show import print_json
from duly.client.context import checked_text

group = typer.Typer(help="Orgs: whom the work is for.", no_args_is_help=True, rich_markup_mode=None)


@group.command()
def create(
    name: Annotated[str, typer.Argument(help="What the org is called.", show_default=False)],
    org_id: Annotated[UUID | None, typer.Option("--id", help="Its id; a new one if left out.")] = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Make an org known; one that is known gets the name. Prints its id."""
    made, called = org_id or uuid4(), checked_text("name", name) or ""
    run(app, lambda duly: duly.create_org(made, called))
    print_json({"org_id": made, "name": called}) if as_json else print(made)


@group.callback()
def orgs() -> None:
    """Orgs: whom the work is for."""
