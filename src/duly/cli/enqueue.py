"""`duly enqueue`."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import typer

from duly.cli.application import read_payload, run
from duly.cli.options import ActorName, AppName, AsJson, Org, Payload, acting, moment
from duly.cli.show import print_json
from duly.client.handle import Handle
from duly.client.options import Choices
from duly.wiring import Duly


def enqueue(
    job_type: Annotated[str, typer.Argument(help="The job type, by its name.", show_default=False)],
    org: Org,
    payload: Payload = "{}",
    key: Annotated[str | None, typer.Option(help="Idempotency key; by default made of the input.")] = None,
    priority: Annotated[int | None, typer.Option(help="Higher runs first.")] = None,
    at: Annotated[str | None, typer.Option(help="Not before this time, as 2026-11-15T12:00:00Z.")] = None,
    subject: Annotated[str | None, typer.Option(help="What the job is about.")] = None,
    project: Annotated[UUID | None, typer.Option(help="The project of the org.")] = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Have a job done; prints its id."""
    given: dict[str, Any] = {
        "idempotency_key": key,
        "priority": priority,
        "scheduled_for": moment(at, "--at"),
        "subject_id": subject,
        "project_id": project,
    }
    choices: Choices = {"org_id": org, "actor": acting(actor)}
    choices.update({n: v for n, v in given.items() if v is not None})  # type: ignore[typeddict-item]
    values = read_payload(payload)

    async def submit(duly: Duly) -> Handle[Any]:
        return await duly.jobs.submit(job_type, values, **choices)

    handle = run(app, submit, needed=True)
    if as_json:
        print_json(handle)
    else:
        print(handle.job_id if handle.created else f"{handle.job_id} was there already")
