"""`duly webhook`."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from duly.cli import webhook_log
from duly.cli.application import run
from duly.cli.options import ActorName, After, AppName, AsJson, Owner, Reason, Size, acting
from duly.cli.show import Columns, print_facts, print_json, print_table
from duly.cli.webhook_log import EndpointId
from duly.store.endpoints import Endpoint

if TYPE_CHECKING:
    from duly.webhooks.endpoints import NewSecret

group = typer.Typer(
    help="Webhooks of an org: where it is told of events.", no_args_is_help=True, rich_markup_mode=None
)
Url = Annotated[str, typer.Argument(help="Where to, as in https://example.com/hooks.", show_default=False)]
Events = typer.Option("--event", help="What it is told of, as in job.completed or job.*; may be given again.")
JobTypes = typer.Option("--type", help="Only of this job type; may be given again.")
SecretFile = Annotated[
    str | None,
    typer.Option("--secret-from", help="A file with a secret that the receiver has already; - for stdin."),
]

_COLUMNS: Columns = {
    "endpoint": "endpoint_id",
    "url": "url",
    "events": "event_types",
    "types": "job_types",
    "disabled": "disabled_at",
    "because": "disable_reason",
    "failures": "failures",
    "description": "description",
}
_FACTS = (
    *("endpoint_id", "url", "description", "event_types", "job_types", "created_by", "created_at"),
    *("updated_at", "disabled_at", "disabled_by", "disable_reason", "failures", "failing_since"),
    *("shut_until", "old_secret_until"),
)


@group.command()
def create(
    url: Url,
    org: Owner,
    reason: Reason,
    events: Annotated[list[str], Events],
    job_types: Annotated[list[str] | None, JobTypes] = None,
    description: Annotated[str, typer.Option(help="What it is for.")] = "",
    secret_from: SecretFile = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Tell an endpoint of events from now on; prints its secret, which is told this once."""
    secret = _read(secret_from)
    made = run(
        app,
        lambda duly: duly.webhooks.create(
            org,
            url,
            events,
            job_types=job_types,
            description=description,
            secret=secret,
            actor=acting(actor),
            reason=reason,
        ),
    )
    _tell(made, as_json)


@group.command("list")
def list_webhooks(
    org: Owner, limit: Size = 50, after: After = None, app: AppName = None, as_json: AsJson = False
) -> None:
    """The endpoints of an org, also those that are disabled; never their secrets."""
    page = run(app, lambda duly: duly.webhooks.list(org, limit=limit, after=after))
    print_json(page) if as_json else print_table(page.endpoints, _COLUMNS, after=page.after)


@group.command()
def show(endpoint: EndpointId, org: Owner, app: AppName = None, as_json: AsJson = False) -> None:
    """One endpoint."""
    _show(run(app, lambda duly: duly.webhooks.get(org, endpoint)), as_json)


@group.command()
def change(
    endpoint: EndpointId,
    org: Owner,
    reason: Reason,
    url: Annotated[str | None, typer.Option(help="Another address.")] = None,
    events: Annotated[list[str] | None, Events] = None,
    job_types: Annotated[list[str] | None, JobTypes] = None,
    all_types: Annotated[bool, typer.Option("--all-types", help="Of every job type again.")] = False,
    description: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Change a part of it; what is left out stays."""
    if all_types and job_types:
        raise typer.BadParameter("either --type or --all-types", param_hint="--all-types")
    changed = run(
        app,
        lambda duly: duly.webhooks.change(
            org,
            endpoint,
            url=url,
            event_types=events or None,
            job_types=[] if all_types else job_types or None,
            description=description,
            actor=acting(actor),
            reason=reason,
        ),
    )
    _show(changed, as_json)


@group.command()
def disable(
    endpoint: EndpointId,
    org: Owner,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Send nothing there until it is enabled; what happens meanwhile is not told."""
    _show(
        run(app, lambda duly: duly.webhooks.disable(org, endpoint, actor=acting(actor), reason=reason)),
        as_json,
    )


@group.command()
def enable(
    endpoint: EndpointId,
    org: Owner,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Send there again: what waits, and what happens from now on."""
    _show(
        run(app, lambda duly: duly.webhooks.enable(org, endpoint, actor=acting(actor), reason=reason)),
        as_json,
    )


@group.command()
def remove(
    endpoint: EndpointId,
    org: Owner,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """End it; what was still to be sent there is not sent."""
    run(app, lambda duly: duly.webhooks.remove(org, endpoint, actor=acting(actor), reason=reason))
    print_json({"endpoint_id": endpoint, "removed": True}) if as_json else print("removed")


@group.command()
def rotate(
    endpoint: EndpointId,
    org: Owner,
    reason: Reason,
    overlap: Annotated[
        float, typer.Option("--overlap-hours", min=0, max=2160, help="How long the old secret still signs.")
    ] = 24,
    secret_from: SecretFile = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Sign with a new secret at once; prints it, this once."""
    secret, beside = _read(secret_from), timedelta(hours=overlap)
    made = run(
        app,
        lambda duly: duly.webhooks.rotate_secret(
            org, endpoint, overlap=beside, secret=secret, actor=acting(actor), reason=reason
        ),
    )
    _tell(made, as_json)


group.command("test")(webhook_log.send_test)
group.command()(webhook_log.deliveries)
group.command()(webhook_log.resend)


def _read(name: str | None) -> str | None:
    """A secret from a file: what is on a command line is seen by everybody on the machine."""
    if name is None:
        return None
    try:
        return (sys.stdin.read() if name == "-" else Path(name).read_text("utf-8")).strip()
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="--secret-from") from None


def _tell(made: NewSecret, as_json: bool) -> None:
    print_json(made) if as_json else print(f"endpoint {made.endpoint.endpoint_id}\nsecret   {made.secret}")


def _show(endpoint: Endpoint, as_json: bool) -> None:
    print_json(endpoint) if as_json else print_facts(endpoint, _FACTS)
