"""`duly webhook`: what endpoints were told, and telling it again."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from duly.cli.application import run
from duly.cli.options import ActorName, After, AppName, AsJson, Owner, Reason, Size, acting, moment
from duly.cli.show import Columns, print_json, print_table
from duly.store.delivery_log import Delivery, DeliveryStatus

EndpointId = Annotated[UUID, typer.Argument(help="The endpoint.", show_default=False)]


def _last(delivery: Delivery) -> object:
    """What came of the last try."""
    last = delivery.try_log[-1] if delivery.try_log else {}
    return last.get("error") or last.get("status")


_LOG: Columns = {
    "message": "message_id",
    "event": "event_type",
    "status": "status",
    "tries": "tries",
    "last": _last,
    "due": "due_at",
    "written": "created_at",
    "ended": "ended_at",
}


def send_test(
    endpoint: EndpointId,
    org: Owner,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Send a message of the kind webhook.test; a worker has to run."""
    sent = run(
        app, lambda duly: duly.webhooks.deliveries.test(org, endpoint, actor=acting(actor), reason=reason)
    )
    _show_message(sent, as_json)


def deliveries(
    endpoint: EndpointId,
    org: Owner,
    status: Annotated[DeliveryStatus | None, typer.Option(help="Only those that are so.")] = None,
    event: Annotated[str | None, typer.Option(help="Only of this kind.")] = None,
    job: Annotated[UUID | None, typer.Option(help="Only about this job.")] = None,
    limit: Size = 50,
    after: After = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """What it was told, the newest first; with --json, each try."""
    page = run(
        app,
        lambda duly: duly.webhooks.deliveries.list(
            org, endpoint, status=status, event_type=event, job_id=job, limit=limit, after=after
        ),
    )
    if as_json:
        print_json({"deliveries": [_plain(one) for one in page.deliveries], "after": page.after})
    else:
        print_table(page.deliveries, _LOG, after=page.after)


def resend(
    endpoint: EndpointId,
    org: Owner,
    reason: Reason,
    message: Annotated[str | None, typer.Argument(help="The message, as in webhook-id.")] = None,
    failed_since: Annotated[
        str | None, typer.Option(help="All that have failed since, as 2026-11-15T12:00:00Z.")
    ] = None,
    limit: Annotated[int, typer.Option(help="Of those that have failed, so many at most.")] = 1000,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Send a message again, or all that have failed since a time."""
    who, since = acting(actor), moment(failed_since, "--failed-since")
    if (message is None) == (since is None):
        raise typer.BadParameter("name a message, or use --failed-since", param_hint="MESSAGE")
    if since is None:
        sent = run(
            app,
            lambda duly: duly.webhooks.deliveries.resend(
                org, endpoint, message or "", actor=who, reason=reason
            ),
        )
        _show_message(sent, as_json)
        return
    done = run(
        app,
        lambda duly: duly.webhooks.deliveries.resend_failed(
            org, endpoint, since=since, limit=limit, actor=who, reason=reason
        ),
    )
    print_json(done) if as_json else print(f"{done.count} sent again{', and there is more' * done.more}")


def _show_message(delivery: Delivery, as_json: bool) -> None:
    print_json(_plain(delivery)) if as_json else print_table([delivery], _LOG)


def _plain(delivery: Delivery) -> dict[str, object]:
    kept = delivery.model_dump(exclude={"about_a_job"})
    return {"message_id": delivery.message_id, **kept, "job_id": delivery.about}
