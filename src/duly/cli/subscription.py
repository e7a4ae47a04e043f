"""`duly subscription`."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from duly.cli.application import run
from duly.cli.notify import Locale, Whom
from duly.cli.options import ActorName, After, AppName, AsJson, JobType, Org, Size, acting
from duly.cli.show import Columns, print_json, print_table
from duly.store.subscriptions import OUTCOMES

group = typer.Typer(help="Who is told how jobs end.", no_args_is_help=True, rich_markup_mode=None)
OfJob = Annotated[UUID | None, typer.Option("--job", help="Only of this job.")]

_COLUMNS: Columns = {
    "subscription": "subscription_id",
    "job": "job_id",
    "type": "job_type",
    "outcomes": "outcomes",
    "channel": "channel",
    "recipient": "recipient",
    "locale": "locale",
    "told": "told_at",
    "by": "created_by",
}


@group.command()
def add(
    to: Whom,
    org: Org,
    job: OfJob = None,
    job_type: JobType = None,
    outcomes: Annotated[
        list[str] | None, typer.Option("--when", help="completed, failed, dead, canceled; by default all.")
    ] = None,
    locale: Locale = "en",
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Have somebody told how a job ends, those of a type, or all."""
    made = run(
        app,
        lambda duly: duly.subscriptions.subscribe(
            org,
            to,
            job_id=job,
            job_type=job_type,
            outcomes=outcomes or OUTCOMES,
            locale=locale,
            actor=acting(actor),
        ),
    )
    print_json(made) if as_json else print_table([made], _COLUMNS)


@group.command("list")
def list_subscriptions(
    org: Org,
    job: OfJob = None,
    limit: Size = 50,
    after: After = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """The subscriptions of an org, the newest first."""
    page = run(app, lambda duly: duly.subscriptions.list(org, job_id=job, limit=limit, after=after))
    print_json(page) if as_json else print_table(page.subscriptions, _COLUMNS, after=page.after)


@group.command()
def remove(
    subscription: Annotated[UUID, typer.Argument(help="Its id.", show_default=False)],
    org: Org,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """End a subscription."""
    gone = run(app, lambda duly: duly.subscriptions.unsubscribe(org, subscription))
    print_json(gone) if as_json else print_table([gone], _COLUMNS)
