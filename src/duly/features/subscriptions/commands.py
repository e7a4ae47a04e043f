"""`duly subscriptions`."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from duly.app import Duly
from duly.cli.command import Group
from duly.cli.options import ActorOption, JobType, Org, Paging, argument
from duly.cli.output import columns
from duly.features.notifications.commands import Locale, RecipientArgument
from duly.features.subscriptions.models import OUTCOMES, Subscription, SubscriptionPage

subscriptions = Group("subscriptions", "Manage subscriptions to the outcomes of jobs.")
OneJob = Annotated[UUID | None, typer.Option("--job", help="Filter by job id.")]


@subscriptions.command()
async def create(
    duly: Duly,
    to: RecipientArgument,
    org: Org,
    actor: ActorOption,
    job: OneJob = None,
    job_type: JobType = None,
    outcomes: Annotated[
        list[str] | None,
        typer.Option("--when", help="Notify on completed, failed, dead or canceled; repeatable."),
    ] = None,
    locale: Locale = "en",
) -> Subscription:
    """Subscribe a recipient to a job, a job type, or all jobs."""
    return await duly.subscriptions.subscribe(
        org, to, job_id=job, job_type=job_type, outcomes=outcomes or OUTCOMES, locale=locale, actor=actor
    )


@subscriptions.command(
    "list",
    columns=columns(
        *("subscription_id", "job_id", "job_type", "outcomes", "channel", "recipient", "locale"),
        notified="told_at",
        created_by="created_by",
    ),
)
async def list_subscriptions(duly: Duly, org: Org, paging: Paging, job: OneJob = None) -> SubscriptionPage:
    """List the subscriptions of an org, newest first."""
    return await duly.subscriptions.list(org, job_id=job, **paging)


@subscriptions.command()
async def delete(
    duly: Duly, subscription: Annotated[UUID, argument("Select the subscription by its id.")], org: Org
) -> Subscription:
    """Delete a subscription."""
    return await duly.subscriptions.unsubscribe(org, subscription)
