"""`duly docs`: list, show, change, download and delete documents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

import typer

from duly.app import Duly
from duly.apps.documents.command_group import (
    DocumentId,
    FolderPath,
    MetadataOption,
    NewName,
    Principal,
    docs,
    find_folder,
    parse_metadata,
)
from duly.apps.documents.library.service import DocumentPage
from duly.apps.documents.models import Document, DocumentStatus
from duly.cli.options import Paging, Reason
from duly.cli.output import Output, columns, print_facts, print_table
from duly.features.pagination import MAX_PAGE_SIZE

FolderOption = Annotated[
    str | None, typer.Option("--folder", help="Select a folder by its path or id; / is the root.")
]
_VERSIONS = columns("version", "file_name", "size", "sha256", "created_at", by="created_by")
_EXTRACTIONS = columns(
    *("extraction_id", "version", "engine", "status", "warnings", "error_code", "error_message", "job_id"),
    pages="actual_pages",
    cents="actual_cost_cents",
)


@docs.command(
    "list",
    columns=columns(
        *("document_id", "name", "version", "size", "status", "updated_at"),
        pages="page_count",
        type="doc_type",
    ),
)
async def list_documents(
    duly: Duly,
    principal: Principal,
    paging: Paging,
    folder: FolderOption = None,
    doc_type: Annotated[str | None, typer.Option("--type", help="Filter by type, as in invoice.")] = None,
    status: Annotated[DocumentStatus | None, typer.Option(help="Filter by status.")] = None,
) -> DocumentPage:
    """List the documents that the actor may see, newest first."""
    node_id = None if folder is None else await find_folder(duly.documents, principal, folder)
    in_root = folder is not None and node_id is None
    return await duly.documents.list(
        principal, node_id=node_id, in_root=in_root, doc_type=doc_type, status=status, **paging
    )


@docs.command()
async def show(duly: Duly, document: DocumentId, principal: Principal) -> Output:
    """Show a document with its newest 500 versions and extractions."""
    found = await duly.documents.get(principal, document)
    versions = await duly.documents.versions(principal, document, limit=MAX_PAGE_SIZE)
    extractions = await duly.documents.extractions(principal, document, limit=MAX_PAGE_SIZE)

    def print_all() -> None:
        print_facts(found)
        print_table(versions, _VERSIONS)
        if extractions:
            print_table(extractions, _EXTRACTIONS)

    return Output({"document": found, "versions": versions, "extractions": extractions}, print_all)


@docs.command()
async def move(
    duly: Duly, document: DocumentId, folder: FolderPath, principal: Principal, name: NewName = None
) -> Document:
    """Select another folder for a document, / for the root."""
    node_id = await find_folder(duly.documents, principal, folder)
    return await duly.documents.change(principal, document, name=name, move_to=node_id, moves=True)


@docs.command()
async def change(
    duly: Duly,
    document: DocumentId,
    principal: Principal,
    name: NewName = None,
    folder: FolderOption = None,
    metadata: MetadataOption = None,
    no_metadata: Annotated[bool, typer.Option("--no-metadata", help="Remove all metadata.")] = False,
) -> Document:
    """Update the name, folder or metadata of a document."""
    if name is None and folder is None and not metadata and not no_metadata:
        raise typer.BadParameter("nothing to change", param_hint="--name, --folder, --metadata")
    if metadata and no_metadata:
        raise typer.BadParameter("use either --metadata or --no-metadata", param_hint="--metadata")
    return await duly.documents.change(
        principal,
        document,
        name=name,
        move_to=None if folder is None else await find_folder(duly.documents, principal, folder),
        moves=folder is not None,
        metadata=parse_metadata(metadata) if metadata or no_metadata else None,
    )


@docs.command()
async def delete(duly: Duly, document: DocumentId, principal: Principal, reason: Reason) -> Output:
    """Delete a document and everything derived from it."""
    await duly.documents.remove(principal, document, reason=reason)
    return Output({"document_id": document, "deleted": True}, "deleted")


@docs.command()
async def download(
    duly: Duly,
    document: DocumentId,
    principal: Principal,
    version: Annotated[
        int | None, typer.Option(min=1, help="Select the version.", show_default="current")
    ] = None,
    to: Annotated[Path | None, typer.Option("--to", help="Select the file or folder to write to.")] = None,
) -> Output:
    """Read the file of a document; an existing file is not replaced."""
    found, chunks = await duly.documents.content(principal, document, version)
    # The file name is the last part of a path, never a path.
    path = Path(found.file_name) if to is None else to / found.file_name if to.is_dir() else to
    await write_file(path, chunks)
    return Output({"document_id": document, "path": str(path)}, str(path))


async def write_file(path: Path, chunks: AsyncIterator[bytes]) -> None:
    """Write a new file; remove it again if that fails."""
    try:
        file = await asyncio.to_thread(path.open, "xb")
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="--to") from None
    try:
        with file:
            async for chunk in chunks:
                await asyncio.to_thread(file.write, chunk)
    except BaseException:
        await asyncio.to_thread(path.unlink, missing_ok=True)
        raise
