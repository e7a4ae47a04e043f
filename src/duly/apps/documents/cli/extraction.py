"""`duly docs`: documents are read, and jobs about them are followed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated
from uuid import UUID

import typer
from pydantic import TypeAdapter

from duly.app import Duly
from duly.apps.documents.cli.shared import DocumentId, run, visitor
from duly.apps.documents.elements import Engine, PageElements
from duly.apps.documents.errors import UnknownFile
from duly.cli.exit_codes import ExitCode
from duly.cli.options import ActorName, AppName, AsJson, Org, Size
from duly.cli.output import print_json, print_lines
from duly.core.states import Status
from duly.features.jobs.follow import watch_job

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


def text(
    document: DocumentId,
    org: Org,
    page: Annotated[int | None, typer.Option(min=1, help="Only this page.")] = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """What was read out of a document, page by page."""
    who = visitor(org, actor)

    async def find(duly: Duly) -> list[PageElements]:
        _, read = await duly.documents.elements(who, document)
        pages = TypeAdapter(list[PageElements]).validate_json(read)
        if page is not None and page > len(pages):
            raise UnknownFile("no such page", field="page", fix=f"it has {len(pages)}")
        return [one for one in pages if page in (None, one.number)]

    pages = run(app, find)
    if as_json:
        print_json({"document_id": document, "pages": pages})
        return
    for one in pages:
        said = "" if one.state == "text" else f" ({one.state})"
        print_lines([f"-- page {one.number}{said}", one.text])


def passages(
    document: DocumentId,
    org: Org,
    start: Annotated[int, typer.Option(min=0, help="The first one, from 0.")] = 0,
    limit: Size = 50,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """What search finds of a document, in its order."""
    who = visitor(org, actor)
    found = run(app, lambda duly: duly.documents.passages(who, document, start=start, limit=limit))
    if as_json:
        print_json({"document_id": document, "passages": found})
        return
    for one in found:
        print_lines([f"-- {one.index}, page {one.page}, {one.type}", one.text])
    if len(found) == limit:
        print(f"there may be more: --start {found[-1].index + 1}")


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
