"""`duly limits`."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import typer

from duly.app import Duly
from duly.cli.command import Group
from duly.cli.options import Change, Paging, number_option
from duly.cli.output import Columns, columns
from duly.features.limits.models import UNCHANGED, Limit, LimitPage

limits = Group("limits", "Limit and pause orgs and job types.")
# Not from DULY_ORG: a limit for one org and a limit for every org must not be mixed up.
LimitedOrg = Annotated[UUID | None, typer.Option("--org", help="Select an org.", show_default="every org")]
LimitedType = Annotated[
    str | None, typer.Option("--type", help="Select a job type.", show_default="every type")
]
_COLUMNS: Columns = {
    "org": lambda limit: limit.org_id or "every",
    "type": lambda limit: limit.job_type or "every",
    **columns("running", "max_running", "starts_per_second", "burst", "max_waiting"),
    **columns("paused_at", "paused_by", reason="pause_reason"),
}


@limits.command("list", columns=_COLUMNS)
async def list_limits(
    duly: Duly, paging: Paging, org: LimitedOrg = None, job_type: LimitedType = None
) -> LimitPage:
    """List the limits and pauses, also lifted ones."""
    return await duly.limits.list(org, job_type, **paging)


@limits.command("set")
async def set_limit(
    duly: Duly,
    change: Change,
    org: LimitedOrg = None,
    job_type: LimitedType = None,
    max_running: Annotated[
        Any, number_option("--max-running", "Limit the jobs that run at a time; none lifts it.")
    ] = UNCHANGED,
    starts_per_second: Annotated[
        Any, number_option("--starts-per-second", "Limit the starts per second; none lifts it.", float)
    ] = UNCHANGED,
    burst: Annotated[Any, number_option("--burst", "Limit the starts at once.")] = UNCHANGED,
    max_waiting: Annotated[
        Any, number_option("--max-waiting", "Limit the queued jobs of an org; none lifts it.")
    ] = UNCHANGED,
) -> Limit:
    """Limit an org, a job type, or a job type of an org; the rest stays."""
    return await duly.limits.set(
        org,
        job_type,
        max_running=max_running,
        starts_per_second=starts_per_second,
        burst=burst,
        max_waiting=max_waiting,
        **change,
    )


@limits.command()
async def pause(duly: Duly, change: Change, org: LimitedOrg = None, job_type: LimitedType = None) -> Limit:
    """Pause an org or a job type; none of its jobs starts."""
    return await duly.limits.pause(org, job_type, **change)


@limits.command()
async def resume(duly: Duly, change: Change, org: LimitedOrg = None, job_type: LimitedType = None) -> Limit:
    """Resume a paused org or job type."""
    return await duly.limits.resume(org, job_type, **change)
