"""`duly docs export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from duly.blobs import BlobRef
from duly.cli.docs_application import folder_id, run, visitor
from duly.cli.docs_files import written
from duly.cli.docs_reading import Wait, follow
from duly.cli.exits import ExitCode
from duly.cli.options import ActorName, AppName, AsJson, Org
from duly.cli.show import print_json
from duly.documents.exports.shapes import Format
from duly.model.states import Status
from duly.wiring import Duly

if TYPE_CHECKING:
    from duly.client.handle import Handle


def export(
    org: Org,
    documents: Annotated[
        list[UUID] | None,
        typer.Argument(metavar="[DOCUMENT]...", help="Only these.", show_default=False),
    ] = None,
    folder: Annotated[str | None, typer.Option("--folder", help="Only of this one and below.")] = None,
    doc_type: Annotated[str | None, typer.Option("--type", help="Only of this type, as invoice.")] = None,
    query: Annotated[str | None, typer.Option("--query", help="What a search finds instead.")] = None,
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
    """Have documents, or what a search finds, written to files by a job."""
    if query is not None and (documents or folder or doc_type):
        raise typer.BadParameter("either a query, or documents", param_hint="--query")
    who = visitor(org, actor)

    async def begin(duly: Duly) -> Handle[Any]:
        exports = duly.documents.exports
        if query is not None:
            return await exports.search(who, query, format=form, bom=bom)
        node_id = None if folder is None else await folder_id(duly.documents, who, folder)
        chosen: dict[str, Any] = {"document_ids": documents or None, "node_id": node_id, "doc_type": doc_type}
        return await exports.documents(who, **chosen, format=form, bom=bom)

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


async def _saved(duly: Duly, handle: Handle[Any], folder: Path) -> list[Path] | None:
    """The files of a job when it is done; none if it ended badly."""
    ended = await handle.wait()
    if ended.status is not Status.COMPLETED:
        typer.echo(f"error: the job {handle.job_id} ended badly: {ended.error_message}", err=True)
        return None
    blobs, files = (await duly.ground()).blobs, []
    for file in await handle.artifacts():
        path = folder / Path(file.name).name
        await written(path, blobs.stream(BlobRef.parse(file.blob_ref), org_id=handle.org_id))
        files.append(path)
    return files
