"""`duly alert`."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from duly.cli.application import run
from duly.cli.options import After, AppName, AsJson, Size
from duly.cli.show import Columns, print_json, print_table
from duly.model.alerts import Kind
from duly.model.system import SYSTEM_ORG

group = typer.Typer(help="What somebody should look at.", no_args_is_help=True, rich_markup_mode=None)

_COLUMNS: Columns = {
    "since": "fired_at",
    "severity": "severity",
    "kind": "kind",
    "about": "target",
    "what": "summary",
    "over": "resolved_at",
}


@group.command("list")
def list_alerts(
    # Not from DULY_ORG: who leaves it out means the installation.
    org: Annotated[UUID | None, typer.Option("--org", help="Of this org; else of the installation.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also those that are over.")] = False,
    kind: Annotated[Kind | None, typer.Option(help="Only of this kind.")] = None,
    limit: Size = 50,
    after: After = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """The open alerts, the newest first."""
    page = run(
        app,
        lambda duly: duly.alerts.list(
            org or SYSTEM_ORG, everything=everything, kind=kind, limit=limit, after=after
        ),
    )
    print_json(page) if as_json else print_table(page.alerts, _COLUMNS, after=page.after)
