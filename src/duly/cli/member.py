"""`duly member`."""

from __future__ import annotations

from typing import Annotated

import typer

from duly.cli.application import run
from duly.cli.options import ActorName, After, AppName, AsJson, Org, Reason, Size, acting
from duly.cli.show import Columns, print_json, print_table
from duly.model.access import Role

group = typer.Typer(help="Members of an org.", no_args_is_help=True, rich_markup_mode=None)
UserId = Annotated[str, typer.Argument(help="Who, by the id that tokens have in `sub`.", show_default=False)]

_COLUMNS: Columns = {"user": "user_id", "role": "role", "since": "created_at"}


@group.command("list")
def list_members(
    org: Org, limit: Size = 50, after: After = None, app: AppName = None, as_json: AsJson = False
) -> None:
    """The members of an org, by their ids."""
    page = run(app, lambda duly: duly.members.list(org, limit=limit, after=after))
    print_json(page) if as_json else print_table(page.members, _COLUMNS, after=page.after)


@group.command("set")
def set_role(
    user_id: UserId,
    role: Annotated[Role, typer.Argument(help="What they may do.", show_default=False)],
    org: Org,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Make somebody a member, or change their role."""
    member = run(app, lambda duly: duly.members.set(org, user_id, role, actor=acting(actor), reason=reason))
    print_json(member) if as_json else print_table([member], _COLUMNS)


@group.command()
def remove(
    user_id: UserId,
    org: Org,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """End a membership."""
    gone = run(app, lambda duly: duly.members.remove(org, user_id, actor=acting(actor), reason=reason))
    print_json(gone) if as_json else print("removed")
