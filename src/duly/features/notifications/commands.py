"""`duly notifications`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import typer

from duly.app import Duly
from duly.cli.command import Group, Rows
from duly.cli.options import ActorOption, Change, OptionalPayload, Owner, Paging, argument, time_option
from duly.cli.output import Output, columns, print_lines
from duly.features.notifications.models import (
    DeliveryStatus,
    Notification,
    NotificationPage,
    Suppression,
    SuppressionPage,
)

notifications = Group("notifications", "Send and inspect notifications.")
TemplateKey = Annotated[str, argument("Select the template, as in job.completed.")]
RecipientArgument = Annotated[str, argument("Select the recipient: email:anna@example.com, in_app:u-17.")]
Locale = Annotated[str, typer.Option(help="Set the recipient's language, as in de or de-AT.")]
NotificationId = Annotated[UUID, argument("Select the notification by its id.")]


@notifications.command(
    columns=columns("notification_id", recipient=lambda sent: str(sent.recipient), new="created")
)
async def send(
    duly: Duly,
    template: TemplateKey,
    org: Owner,
    to: Annotated[
        list[str], typer.Option("--to", help="Send to this recipient, as in in_app:u-17; repeatable.")
    ],
    payload: OptionalPayload,
    actor: ActorOption,
    locale: Locale = "en",
    at: Annotated[datetime | None, time_option("--at", "Send at this time or later.")] = None,
    bucket: Annotated[
        str | None,
        typer.Option(help="Send the same message once per bucket.", show_default="one per day"),
    ] = None,
) -> Rows:
    """Send a notification; a recipient gets the same one only once."""
    return {
        "notifications": await duly.notifications.send(
            org, template, payload, to=to, locale=locale, scheduled_for=at, bucket=bucket, actor=actor
        )
    }


@notifications.command(
    "list",
    columns=columns(
        *("notification_id", "channel", "recipient", "template_key", "delivery_status", "attempt_count"),
        *("scheduled_at", "sent_at", "last_error"),
    ),
)
async def list_notifications(
    duly: Duly,
    org: Owner,
    paging: Paging,
    status: Annotated[DeliveryStatus | None, typer.Option(help="Filter by delivery status.")] = None,
    channel: Annotated[str | None, typer.Option(help="Filter by channel.")] = None,
    recipient: Annotated[str | None, typer.Option(help="Filter by recipient.")] = None,
    job: Annotated[UUID | None, typer.Option(help="Filter by job id.")] = None,
) -> NotificationPage:
    """List the notifications of an org, newest first."""
    return await duly.notifications.list(
        org, status=status, channel=channel, recipient=recipient, job_id=job, **paging
    )


@notifications.command()
async def show(duly: Duly, notification: NotificationId, org: Owner) -> Notification:
    """Show a notification and its delivery."""
    return await duly.notifications.show(org, notification)


@notifications.command()
async def resend(duly: Duly, notification: NotificationId, org: Owner, change: Change) -> Notification:
    """Resend a failed or suppressed notification."""
    return await duly.notifications.resend(org, notification, **change)


@notifications.command()
async def preview(
    duly: Duly, template: TemplateKey, org: Owner, payload: OptionalPayload, locale: Locale = "en"
) -> Output:
    """Render a template with a payload, without sending it."""
    message = await duly.notifications.preview(org, template, locale=locale, payload=payload)
    lines = [message.subject, "", message.body]
    return Output(message._asdict(), lambda: print_lines(lines))


@notifications.command(columns=columns("channel", "recipient", "reason", "created_by", "created_at"))
async def suppressed(duly: Duly, org: Owner, paging: Paging) -> SuppressionPage:
    """List the suppressed recipients of an org."""
    return await duly.notifications.suppressions.list(org, **paging)


@notifications.command()
async def suppress(duly: Duly, to: RecipientArgument, org: Owner, change: Change) -> Suppression:
    """Suppress all notifications to a recipient."""
    return await duly.notifications.suppressions.add(org, to, **change)


@notifications.command()
async def unsuppress(duly: Duly, to: RecipientArgument, org: Owner, change: Change) -> Output:
    """Allow notifications to a suppressed recipient again."""
    suppressed = await duly.notifications.suppressions.remove(org, to, **change)
    text = "the recipient gets notifications again" if suppressed else "the recipient was not suppressed"
    return Output({"was_suppressed": suppressed}, text)
