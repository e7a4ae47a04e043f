"""`duly limit`."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import typer

from duly.cli.application import run
from duly.cli.options import ActorName, After, AppName, AsJson, Reason, Size, acting, number
from duly.cli.show import Columns, print_json, print_table
from duly.store.gates import Limit

group = typer.Typer(
    help="Limits and pauses of orgs and job types.", no_args_is_help=True, rich_markup_mode=None
)
# Not from DULY_ORG: whether one org or all are meant must be said.
OneOrg = Annotated[UUID | None, typer.Option("--org", help="Of this org; without it, of every org.")]
OneType = Annotated[
    str | None, typer.Option("--type", help="Of this job type; without it, of all of the org.")
]

_COLUMNS: Columns = {
    "org": lambda limit: limit.org_id or "every",
    "type": lambda limit: limit.job_type or "every",
    "running": "running",
    "max running": "max_running",
    "per second": "starts_per_second",
    "burst": "burst",
    "max waiting": "max_waiting",
    "paused": "paused_at",
    "by": "paused_by",
    "reason": "pause_reason",
}


@group.command("list")
def list_limits(
    org: OneOrg = None,
    job_type: OneType = None,
    limit: Size = 50,
    after: After = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Everything that was ever limited or paused."""
    page = run(app, lambda duly: duly.limits.list(org, job_type, limit=limit, after=after))
    print_json(page) if as_json else print_table(page.limits, _COLUMNS, after=page.after)


@group.command("set")
def set_limit(
    reason: Reason,
    org: OneOrg = None,
    job_type: OneType = None,
    max_running: Annotated[str | None, typer.Option(help="Jobs at a time; none lifts it.")] = None,
    starts_per_second: Annotated[str | None, typer.Option(help="Starts a second; none lifts it.")] = None,
    burst: Annotated[str | None, typer.Option(help="Starts that may come at once.")] = None,
    max_waiting: Annotated[str | None, typer.Option(help="Waiting jobs of an org; none lifts it.")] = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Limit an org, a job type, or a job type of an org; what is left out stays."""
    said = {"max_running": max_running, "burst": burst, "max_waiting": max_waiting}
    wanted: dict[str, Any] = {
        name: number(text, f"--{name.replace('_', '-')}", int)
        for name, text in said.items()
        if text is not None
    }
    if starts_per_second is not None:
        wanted["starts_per_second"] = number(starts_per_second, "--starts-per-second", float)
    changed = run(
        app, lambda duly: duly.limits.set(org, job_type, **wanted, actor=acting(actor), reason=reason)
    )
    _show(changed, as_json)


@group.command()
def pause(
    reason: Reason,
    org: OneOrg = None,
    job_type: OneType = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Start none of these jobs until they are resumed."""
    _show(
        run(app, lambda duly: duly.limits.pause(org, job_type, actor=acting(actor), reason=reason)), as_json
    )


@group.command()
def resume(
    reason: Reason,
    org: OneOrg = None,
    job_type: OneType = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Let them start again."""
    _show(
        run(app, lambda duly: duly.limits.resume(org, job_type, actor=acting(actor), reason=reason)), as_json
    )


def _show(limit: Limit, as_json: bool) -> None:
    print_json(limit) if as_json else print_table([limit], _COLUMNS)
