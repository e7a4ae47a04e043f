"""`duly notify`."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from duly.cli.application import read_payload, run
from duly.cli.options import ActorName, After, AppName, AsJson, Owner, Payload, Reason, Size, acting, moment
from duly.cli.show import Columns, print_facts, print_json, print_lines, print_table
from duly.store.notifications import DeliveryStatus

group = typer.Typer(help="What the people of an org are told.", no_args_is_help=True, rich_markup_mode=None)
TemplateKey = Annotated[str, typer.Argument(help="The template, as in job.completed.", show_default=False)]
Whom = Annotated[
    str, typer.Argument(help="How, and whom: email:anna@example.com, in_app:u-17.", show_default=False)
]
Locale = Annotated[str, typer.Option(help="The recipient's language, as in de or de-AT.")]

_COLUMNS: Columns = {
    "notification": "notification_id",
    "channel": "channel",
    "recipient": "recipient",
    "template": "template_key",
    "status": "delivery_status",
    "tries": "attempt_count",
    "due": "scheduled_at",
    "sent": "sent_at",
    "error": "last_error",
}
_SENT: Columns = {
    "notification": "notification_id",
    "to": lambda one: str(one.recipient),
    "new": "created",
}
_FACTS = (
    *(
        "notification_id",
        "channel",
        "recipient",
        "template_key",
        "locale",
        "delivery_status",
        "attempt_count",
    ),
    *("last_error", "scheduled_at", "sent_at", "read_at", "job_id", "delivery_job_id", "schedule_bucket"),
    *("created_by", "created_at", "payload", "subject", "body"),
)
_AGAIN, _ALWAYS = "they are written to again", "they were written to all along"
_SUPPRESSED: Columns = {
    "channel": "channel",
    "recipient": "recipient",
    "reason": "reason",
    "by": "created_by",
    "since": "created_at",
}


@group.command()
def send(
    template: TemplateKey,
    org: Owner,
    to: Annotated[list[str], typer.Option("--to", help="As in email:anna@example.com; may be given again.")],
    payload: Payload = "{}",
    locale: Locale = "en",
    at: Annotated[str | None, typer.Option(help="Not before then, as 2026-11-15T12:00:00Z.")] = None,
    bucket: Annotated[
        str | None, typer.Option(help="The same is told once in each; else once a day.")
    ] = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Have people told; what they were told already is not told again."""
    values, due = read_payload(payload), moment(at, "--at")
    sent = run(
        app,
        lambda duly: duly.notifications.send(
            org, template, values, to=to, locale=locale, scheduled_for=due, bucket=bucket, actor=acting(actor)
        ),
    )
    if as_json:
        print_json({"notifications": sent})
    else:
        print_table(sent, _SENT)


@group.command("list")
def list_notifications(
    org: Owner,
    status: Annotated[DeliveryStatus | None, typer.Option(help="Only of this status.")] = None,
    channel: Annotated[str | None, typer.Option(help="Only on this channel.")] = None,
    recipient: Annotated[str | None, typer.Option(help="Only to this recipient.")] = None,
    job: Annotated[UUID | None, typer.Option(help="Only about this job.")] = None,
    limit: Size = 50,
    after: After = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """The notifications of an org, the newest first."""
    page = run(
        app,
        lambda duly: duly.notifications.list(
            org, status=status, channel=channel, recipient=recipient, job_id=job, limit=limit, after=after
        ),
    )
    print_json(page) if as_json else print_table(page.notifications, _COLUMNS, after=page.after)


@group.command()
def show(
    notification: Annotated[UUID, typer.Argument(help="Its id.", show_default=False)],
    org: Owner,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """One notification, and what became of it."""
    found = run(app, lambda duly: duly.notifications.show(org, notification))
    print_json(found) if as_json else print_facts(found, _FACTS)


@group.command()
def resend(
    notification: Annotated[UUID, typer.Argument(help="Its id.", show_default=False)],
    org: Owner,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Have one told again that failed or was suppressed."""
    found = run(
        app,
        lambda duly: duly.notifications.resend(org, notification, actor=acting(actor), reason=reason),
    )
    print_json(found) if as_json else print_facts(found, _FACTS)


@group.command()
def preview(
    template: TemplateKey,
    org: Owner,
    payload: Payload = "{}",
    locale: Locale = "en",
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """What a message would say; a value that the payload does not have is named."""
    values = read_payload(payload)
    words = run(app, lambda duly: duly.notifications.preview(org, template, locale=locale, payload=values))
    print_json(words._asdict()) if as_json else print_lines([words.subject, "", words.body])


@group.command()
def suppressed(
    org: Owner, limit: Size = 50, after: After = None, app: AppName = None, as_json: AsJson = False
) -> None:
    """To whom nothing is sent, and why."""
    page = run(app, lambda duly: duly.notifications.suppressions.list(org, limit=limit, after=after))
    print_json(page) if as_json else print_table(page.suppressions, _SUPPRESSED, after=page.after)


@group.command()
def suppress(
    to: Whom,
    org: Owner,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Send nothing to somebody any more."""
    made = run(
        app, lambda duly: duly.notifications.suppressions.add(org, to, actor=acting(actor), reason=reason)
    )
    print_json(made) if as_json else print_table([made], _SUPPRESSED)


@group.command()
def unsuppress(
    to: Whom,
    org: Owner,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Send to somebody again."""
    was = run(
        app, lambda duly: duly.notifications.suppressions.remove(org, to, actor=acting(actor), reason=reason)
    )
    print_json({"was_suppressed": was}) if as_json else print_lines([_AGAIN if was else _ALWAYS])
