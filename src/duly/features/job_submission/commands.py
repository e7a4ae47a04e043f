"""`duly enqueue`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import typer

from duly.app import Duly
from duly.cli.options import ActorOption, OptionalPayload, Org, argument, time_option
from duly.cli.output import Output
from duly.jobs.enqueue_options import EnqueueKeywords


async def enqueue(
    duly: Duly,
    job_type: Annotated[str, argument("Select the job type by its name.")],
    org: Org,
    payload: OptionalPayload,
    actor: ActorOption,
    key: Annotated[
        str | None,
        typer.Option(help="Set the idempotency key.", show_default="derived from the payload"),
    ] = None,
    priority: Annotated[int | None, typer.Option(help="Set the priority; higher runs first.")] = None,
    at: Annotated[datetime | None, time_option("--at", "Run the job at this time or later.")] = None,
    subject: Annotated[str | None, typer.Option(help="Set the subject of the job.")] = None,
    project: Annotated[UUID | None, typer.Option(help="Assign the job to this project.")] = None,
) -> Output:
    """Enqueue a job and print its id."""
    options: EnqueueKeywords = {"org_id": org, "actor": actor}
    optional = {
        "idempotency_key": key,
        "priority": priority,
        "scheduled_for": at,
        "subject_id": subject,
        "project_id": project,
    }
    options.update({name: value for name, value in optional.items() if value is not None})  # type: ignore[typeddict-item]
    handle = await duly.jobs.submit(job_type, payload, **options)
    return Output(handle, f"{handle.job_id}{'' if handle.created else ' already exists'}")
