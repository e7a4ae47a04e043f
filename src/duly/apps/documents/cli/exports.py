"""`duly docs export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from duly.app import Duly
from duly.apps.documents.cli.extraction import Wait, follow
from duly.apps.documents.cli.files import written
from duly.apps.documents.cli.filters import (
    CreatedFrom,
    CreatedTo,
    Facts,
    InLanguage,
    OfElement,
    OfType,
    PageFrom,
    PageTo,
    Within,
    filters,
    within,
)
from duly.apps.documents.cli.shared import folder_id, run, visitor
from duly.apps.documents.exports.models import Format
from duly.blobs import BlobRef
from duly.cli.exit_codes import ExitCode
from duly.cli.options import ActorName, AppName, AsJson, Org
from duly.cli.output import print_json
from duly.core.states import Status

if TYPE_CHECKING:
    from duly.jobs.handle import Handle


def export(
    org: Org,
    documents: Annotated[
        list[UUID] | None,
        typer.Argument(metavar="[DOCUMENT]...", help="Only these.", show_default=False),
    ] = None,
    folder: Within = None,
    doc_type: OfType = None,
    query: Annotated[str | None, typer.Option("--query", help="What a search finds instead.")] = None,
    language: InLanguage = None,
    element: OfElement = None,
    page_from: PageFrom = None,
    page_to: PageTo = None,
    created_from: CreatedFrom = None,
    created_to: CreatedTo = None,
    metadata: Facts = None,
    form: Annotated[Format, typer.Option("--format", help="What is written.")] = "csv",
    bom: Annotated[bool, typer.Option("--bom", help="A table begins with a mark that Excel needs.")] = False,
    to: Annotated[
        Path | None,
        typer.Option("--to", exists=True, file_okay=False, help="Wait, and write the files to this folder."),
    ] = None,
    wait: Wait = False,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Have documents, or what a search finds, written to files by a job.

    Documents are chosen by their ids, one folder and one type; all other filters are of a search (--query).
    """
    who = visitor(org, actor)
    passages: dict[str, Any] = {
        "languages": language,
        "element_types": element,
        "page_from": page_from,
        "page_to": page_to,
        "created_from": created_from,
        "created_to": created_to,
        "metadata": metadata,
    }
    if query is None:
        _check_documents(passages, folder, doc_type)
    chosen = filters(documents=documents, doc_types=doc_type, **passages)

    async def begin(duly: Duly) -> Handle[Any]:
        exports = duly.documents.exports
        if query is not None:
            asked = await within(duly.documents, who, chosen, folder)
            return await exports.search(who, query, asked, format=form, bom=bom)
        node_id = await folder_id(duly.documents, who, folder[0]) if folder else None
        kind = doc_type[0] if doc_type else None
        return await exports.documents(
            who, document_ids=documents or None, node_id=node_id, doc_type=kind, format=form, bom=bom
        )

    async def begin_job(duly: Duly) -> UUID:
        return (await begin(duly)).job_id

    async def save(duly: Duly) -> list[Path] | None:
        assert to is not None
        return await _saved(duly, await begin(duly), to)

    if to is None:
        follow(app, org, begin_job, wait=wait, as_json=as_json)
        return
    files = run(app, save)
    if files is None:
        raise typer.Exit(ExitCode.JOB_ENDED_BADLY)
    names = [str(file) for file in files]
    print_json({"files": names}) if as_json else print("\n".join(names) or "nothing to write")


def _check_documents(passages: dict[str, Any], folder: list[str] | None, doc_type: list[str] | None) -> None:
    if any(passages.values()):
        raise typer.BadParameter("these filters are of a search: say what to look for", param_hint="--query")
    if len(folder or ()) > 1 or len(doc_type or ()) > 1:
        raise typer.BadParameter(
            "only one for documents; several for a search", param_hint="--folder, --type"
        )


async def _saved(duly: Duly, handle: Handle[Any], folder: Path) -> list[Path] | None:
    """The files of a job when it is done; none if it ended badly."""
    ended = await handle.wait()
    if ended.status is not Status.COMPLETED:
        typer.echo(f"error: the job {handle.job_id} ended badly: {ended.error_message}", err=True)
        return None
    blobs, files = (await duly.resources()).blobs, []
    for file in await handle.artifacts():
        path = folder / Path(file.name).name
        await written(path, blobs.stream(BlobRef.parse(file.blob_ref), org_id=handle.org_id))
        files.append(path)
    return files
