"""`duly webhooks`."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from duly.app import Duly
from duly.cli.command import Group, Rows
from duly.cli.options import Change, Depends, Owner, Paging, argument, time_option
from duly.cli.output import Output, columns
from duly.features.webhooks.models import Delivery, DeliveryStatus, Endpoint, EndpointPage, NewSecret

webhooks = Group("webhooks", "Manage webhook endpoints and their deliveries.")
EndpointId = Annotated[UUID, argument("Select the endpoint by its id.")]
Overlap = Annotated[
    float, typer.Option("--overlap-hours", min=0, max=2160, help="Sign with the old secret for so long.")
]
Description = typer.Option("--description", help="Set the description.")
Events = typer.Option("--event", help="Send this event, as in job.completed or job.*; repeatable.")
JobTypes = Annotated[
    list[str] | None, typer.Option("--type", help="Send events of this job type only; repeatable.")
]


def _secret(
    file: Annotated[
        str | None,
        typer.Option("--secret-from", metavar="FILE", help="Read the signing secret here; - for stdin."),
    ] = None,
) -> str | None:
    """Return the secret in a file: every user of a machine can read its command lines."""
    if file is None:
        return None
    try:
        return (sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")).strip()
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="--secret-from") from None


def _changed_types(
    job_types: JobTypes = None,
    all_types: Annotated[bool, typer.Option("--all-types", help="Send events of every job type.")] = False,
) -> list[str] | None:
    if all_types and job_types:
        raise typer.BadParameter("use either --type or --all-types", param_hint="--all-types")
    return [] if all_types else job_types or None


def _message_or_time(
    message: Annotated[str | None, typer.Argument(help="Select the message by its webhook-id.")] = None,
    failed_since: Annotated[
        datetime | None, time_option("--failed-since", "Resend all that failed since then.")
    ] = None,
) -> str | datetime:
    selected = message or failed_since
    if selected is None or (message and failed_since):
        raise typer.BadParameter("name a message, or use --failed-since", param_hint="MESSAGE")
    return selected


Secret = Annotated[str | None, Depends(_secret)]


@webhooks.command()
async def create(
    duly: Duly,
    url: Annotated[str, argument("Set the URL, as in https://example.com/hooks.")],
    org: Owner,
    change: Change,
    events: Annotated[list[str], Events],
    secret: Secret,
    job_types: JobTypes = None,
    description: Annotated[str, Description] = "",
) -> Output:
    """Create an endpoint and print its secret; it is shown only once."""
    created = await duly.webhooks.create(
        org, url, events, job_types=job_types, description=description, secret=secret, **change
    )
    return _with_secret(created)


@webhooks.command(
    "list",
    columns=columns(
        *("endpoint_id", "url", "event_types", "job_types", "disabled_at", "disable_reason", "failures"),
        "description",
    ),
)
async def list_webhooks(duly: Duly, org: Owner, paging: Paging) -> EndpointPage:
    """List the endpoints of an org, also disabled ones."""
    return await duly.webhooks.list(org, **paging)


@webhooks.command()
async def show(duly: Duly, endpoint: EndpointId, org: Owner) -> Endpoint:
    """Show an endpoint."""
    return await duly.webhooks.get(org, endpoint)


@webhooks.command()
async def update(
    duly: Duly,
    endpoint: EndpointId,
    org: Owner,
    change: Change,
    job_types: Annotated[list[str] | None, Depends(_changed_types)],
    url: Annotated[str | None, typer.Option(help="Set the URL.")] = None,
    events: Annotated[list[str] | None, Events] = None,
    description: Annotated[str | None, Description] = None,
) -> Endpoint:
    """Update an endpoint; omitted options stay."""
    return await duly.webhooks.change(
        org,
        endpoint,
        url=url,
        event_types=events or None,
        job_types=job_types,
        description=description,
        **change,
    )


@webhooks.command()
async def disable(duly: Duly, endpoint: EndpointId, org: Owner, change: Change) -> Endpoint:
    """Disable an endpoint; events in the meantime are not sent later."""
    return await duly.webhooks.disable(org, endpoint, **change)


@webhooks.command()
async def enable(duly: Duly, endpoint: EndpointId, org: Owner, change: Change) -> Endpoint:
    """Enable an endpoint; pending messages and new events are sent."""
    return await duly.webhooks.enable(org, endpoint, **change)


@webhooks.command()
async def delete(duly: Duly, endpoint: EndpointId, org: Owner, change: Change) -> Output:
    """Delete an endpoint; its pending messages are not sent."""
    await duly.webhooks.remove(org, endpoint, **change)
    return Output({"endpoint_id": endpoint, "removed": True}, "deleted")


@webhooks.command()
async def rotate(
    duly: Duly, endpoint: EndpointId, org: Owner, change: Change, secret: Secret, overlap: Overlap = 24
) -> Output:
    """Replace the secret of an endpoint and print the new one once."""
    created = await duly.webhooks.rotate_secret(
        org, endpoint, overlap=timedelta(hours=overlap), secret=secret, **change
    )
    return _with_secret(created)


def _with_secret(created: NewSecret) -> Output:
    return Output(created, f"endpoint {created.endpoint.endpoint_id}\nsecret   {created.secret}")


@webhooks.command("test")
async def send_test(duly: Duly, endpoint: EndpointId, org: Owner, change: Change) -> Rows:
    """Send a webhook.test message; a worker has to run."""
    return _delivery(await duly.webhooks.deliveries.test(org, endpoint, **change))


def _last_result(delivery: Rows) -> Any:
    last = delivery["try_log"][-1] if delivery["try_log"] else {}
    return last.get("error") or last.get("status")


@webhooks.command(
    columns=columns(
        *("message_id", "event_type", "status", "due_at", "created_at"),
        finished="ended_at",
        attempts="tries",
        result=_last_result,
    )
)
async def deliveries(
    duly: Duly,
    endpoint: EndpointId,
    org: Owner,
    paging: Paging,
    status: Annotated[DeliveryStatus | None, typer.Option(help="Filter by status.")] = None,
    event: Annotated[str | None, typer.Option(help="Filter by event type.")] = None,
    job: Annotated[UUID | None, typer.Option(help="Filter by job id.")] = None,
) -> Rows:
    """List the messages to an endpoint, newest first."""
    page = await duly.webhooks.deliveries.list(
        org, endpoint, status=status, event_type=event, job_id=job, **paging
    )
    return {"deliveries": [_delivery(one) for one in page.deliveries], "after": page.after}


@webhooks.command()
async def resend(
    duly: Duly,
    endpoint: EndpointId,
    org: Owner,
    change: Change,
    selected: Annotated[str | datetime, Depends(_message_or_time)],
    limit: Annotated[int, typer.Option(help="Limit the failed messages to resend.")] = 1000,
) -> Output | Rows:
    """Resend a message, or all that failed since a time."""
    log = duly.webhooks.deliveries
    if isinstance(selected, str):
        return _delivery(await log.resend(org, endpoint, selected, **change))
    resent = await log.resend_failed(org, endpoint, since=selected, limit=limit, **change)
    return Output(resent, f"resent {resent.count}{', and there are more' * resent.more}")


def _delivery(delivery: Delivery) -> Rows:
    """Return a delivery as --json prints it."""
    fields = delivery.model_dump(exclude={"is_job_event"})
    return {"message_id": delivery.message_id, **fields, "job_id": delivery.event_job_id}
