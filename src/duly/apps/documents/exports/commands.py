"""`duly docs export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from duly.app import Duly
from duly.apps.documents.command_group import JobFollower, Principal, docs, find_folder
from duly.apps.documents.exports.models import ExportFormat
from duly.apps.documents.library.commands import write_file
from duly.apps.documents.search.commands import FilterOptions, FolderFilter, filter_folders
from duly.apps.documents.search.models import Filters
from duly.blobs import BlobRef
from duly.cli.exit_codes import ExitCode
from duly.cli.output import Output
from duly.core.states import Status
from duly.jobs.handle import Handle


@docs.command()
async def export(
    duly: Duly,
    principal: Principal,
    filters: FilterOptions,
    follower: JobFollower,
    documents: Annotated[
        list[UUID] | None,
        typer.Argument(metavar="[DOCUMENT]...", help="Select documents by id.", show_default=False),
    ] = None,
    folder: FolderFilter = None,
    query: Annotated[str | None, typer.Option("--query", help="Export the hits of this search.")] = None,
    form: Annotated[ExportFormat, typer.Option("--format", help="Choose the file format.")] = "csv",
    bom: Annotated[bool, typer.Option("--bom", help="Start a CSV file with a mark for Excel.")] = False,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", exists=True, file_okay=False, help="Wait, and download the files to this folder."
        ),
    ] = None,
) -> Output | None:
    """Export documents, or the hits of a search, to files by a job.

    Documents are selected by id, one folder and one type; all other filters belong to a search (--query).
    """
    exports, handle = duly.documents.exports, None
    if query is not None:
        filters = await filter_folders(duly.documents, principal, filters, folder)
        filters = filters.model_copy(update={"documents": tuple(documents)}) if documents else filters
        handle = await exports.search(principal, query, filters, format=form, bom=bom)
    else:
        _check_selection(filters, folder)
        handle = await exports.documents(
            principal,
            document_ids=documents or None,
            node_id=await find_folder(duly.documents, principal, folder[0]) if folder else None,
            doc_type=filters.doc_types[0] if filters.doc_types else None,
            format=form,
            bom=bom,
        )
    if to is None:
        return await follower.follow(duly, principal, handle.job_id)
    files = [str(file) for file in await _download(duly, handle, to)]
    return Output({"files": files}, "\n".join(files) or "no files")


def _check_selection(filters: Filters, folder: list[str] | None) -> None:
    if filters.model_copy(update={"doc_types": None}) != Filters():
        raise typer.BadParameter("these filters belong to a search: add a query", param_hint="--query")
    if len(folder or ()) > 1 or len(filters.doc_types or ()) > 1:
        raise typer.BadParameter(
            "only one for documents; several for a search", param_hint="--folder, --type"
        )


async def _download(duly: Duly, handle: Handle[Any], folder: Path) -> list[Path]:
    """Wait for an export and save its files."""
    ended = await handle.wait()
    if ended.status is not Status.COMPLETED:
        typer.echo(f"error: job {handle.job_id} failed: {ended.error_message}", err=True)
        raise typer.Exit(ExitCode.JOB_FAILED)
    blobs, files = (await duly.resources()).blobs, []
    for artifact in await handle.artifacts():
        path = folder / Path(artifact.name).name
        await write_file(path, blobs.stream(BlobRef.parse(artifact.blob_ref), org_id=handle.org_id))
        files.append(path)
    return files
