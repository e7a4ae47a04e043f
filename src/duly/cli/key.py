"""`duly key`."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from duly.cli.application import run
from duly.cli.options import ActorName, After, AppName, AsJson, Owner, Reason, Size, acting, moment
from duly.cli.show import Columns, print_json, print_table
from duly.control.keys import NewKey
from duly.model.access import Scope

group = typer.Typer(help="API keys of an org.", no_args_is_help=True, rich_markup_mode=None)
KeyId = Annotated[
    str, typer.Argument(help="The third part of its text; not the whole text.", show_default=False)
]

_COLUMNS: Columns = {
    "key": "key_id",
    "name": "name",
    "environment": "environment",
    "scopes": "scopes",
    "alive": "alive",
    "expires": "expires_at",
    "revoked": "revoked_at",
    "last used": "last_used_at",
    "by": "created_by",
    "created": "created_at",
}


@group.command("list")
def list_keys(
    org: Owner, limit: Size = 50, after: After = None, app: AppName = None, as_json: AsJson = False
) -> None:
    """The keys of an org, also those that have ended; never their texts."""
    page = run(app, lambda duly: duly.keys.list(org, limit=limit, after=after))
    print_json(page) if as_json else print_table(page.keys, _COLUMNS, after=page.after)


@group.command()
def create(
    name: Annotated[str, typer.Argument(help="What it is for.", show_default=False)],
    org: Owner,
    reason: Reason,
    scopes: Annotated[list[Scope], typer.Option("--scope", help="What it allows; may be given again.")],
    environment: Annotated[str, typer.Option(help="A word that its text shows.")] = "live",
    expires_at: Annotated[str | None, typer.Option(help="Its end, as 2026-11-15T12:00:00Z.")] = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Make a key; prints its text, which is kept nowhere."""
    end = moment(expires_at, "--expires-at")
    made = run(
        app,
        lambda duly: duly.keys.create(
            org, name, scopes, environment=environment, expires_at=end, actor=acting(actor), reason=reason
        ),
    )
    _tell(made, as_json)


@group.command()
def rotate(
    key_id: KeyId,
    org: Owner,
    reason: Reason,
    overlap: Annotated[
        float, typer.Option("--overlap-hours", min=0, max=2160, help="How long the old one still counts.")
    ] = 24,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Make a key that replaces this one; prints its text, which is kept nowhere."""
    beside = timedelta(hours=overlap)
    made = run(
        app,
        lambda duly: duly.keys.rotate(org, key_id, overlap=beside, actor=acting(actor), reason=reason),
    )
    _tell(made, as_json)


@group.command()
def revoke(
    key_id: KeyId,
    org: Owner,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """End a key at once."""
    ended = run(app, lambda duly: duly.keys.revoke(org, key_id, actor=acting(actor), reason=reason))
    print_json(ended) if as_json else print_table([ended], _COLUMNS)


def _tell(made: NewKey, as_json: bool) -> None:
    print_json(made) if as_json else print(made.text)
