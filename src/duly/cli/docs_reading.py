"""`duly docs`: documents are read, and jobs about them are followed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated
from uuid import UUID

import typer

from duly.cli.docs_application import DocumentId, run, visitor
from duly.cli.exits import ExitCode
from duly.cli.options import ActorName, AppName, AsJson, Org
from duly.cli.show import print_json
from duly.cli.watch import watch_job
from duly.documents.elements import Engine
from duly.model.states import Status
from duly.wiring import Duly

Wait = Annotated[bool, typer.Option("--wait", help="Follow it to its end; 1 if it ended badly.")]


def extract(
    document: DocumentId,
    org: Org,
    engine: Annotated[Engine, typer.Option(help="Who reads it.")] = "fast",
    consent: Annotated[
        bool, typer.Option("--consent", help="It may be sent elsewhere, where it has to be.")
    ] = False,
    wait: Wait = False,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Have the current version read, once more or by another engine."""
    who = visitor(org, actor)

    async def begin(duly: Duly) -> UUID:
        return (await duly.documents.extract(who, document, engine, consent=consent)).job_id

    follow(app, org, begin, wait=wait, as_json=as_json)


def follow(
    app: str | None, org: UUID, begin: Callable[[Duly], Awaitable[UUID]], *, wait: bool, as_json: bool
) -> None:
    """Begin a job; say its id, or follow it to its end."""

    async def begun(duly: Duly) -> bool:
        job_id = await begin(duly)
        if wait:
            ended = await watch_job(duly.handle(job_id, org_id=org), as_json=as_json)
            return ended.status is Status.COMPLETED
        print_json({"org_id": org, "job_id": job_id}) if as_json else print(job_id)
        return True

    if not run(app, begun):
        raise typer.Exit(ExitCode.JOB_ENDED_BADLY)
