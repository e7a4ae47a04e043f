"""`duly alerts`."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from duly.app import Duly
from duly.cli.command import Group
from duly.cli.options import Paging
from duly.cli.output import columns
from duly.core.job import SYSTEM_ORG
from duly.features.alerts.models import AlertKind, AlertPage

alerts = Group("alerts", "List alerts.")


@alerts.command("list", columns=columns("fired_at", "severity", "kind", "target", "summary", "resolved_at"))
async def list_alerts(
    duly: Duly,
    paging: Paging,
    # Not from DULY_ORG: without --org, the alerts are those of the installation.
    org: Annotated[
        UUID | None, typer.Option("--org", help="Select the org by its id.", show_default="installation")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Include resolved alerts.")] = False,
    kind: Annotated[AlertKind | None, typer.Option(help="Filter by kind.")] = None,
) -> AlertPage:
    """List the open alerts, newest first."""
    return await duly.alerts.list(org or SYSTEM_ORG, everything=everything, kind=kind, **paging)
