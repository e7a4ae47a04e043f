"""`duly docs`: upload files; large ones in parts, which resume after an interruption."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import typer

from duly.app import Duly
from duly.apps.documents.command_group import (
    ROOT,
    MetadataOption,
    Principal,
    TargetFolder,
    docs,
    find_folder,
    parse_metadata,
)
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.library.filing import FilingResult
from duly.apps.documents.uploads.service import PART_SIZE
from duly.cli.command import Rows
from duly.cli.exit_codes import ExitCode, exit_code
from duly.cli.options import argument
from duly.cli.output import Columns, Output, columns, print_table
from duly.core.errors import Conflict, ContractError, Forbidden, LimitExceeded

if TYPE_CHECKING:
    from duly.apps.documents.service import Documents

_CHUNK_SIZE = 1024 * 1024
_UPLOADED: Columns = {
    "file": "file",
    "document": "document_id",
    "version": "version",
    "result": lambda one: "new" if one.created else "new version" if one.changed else "exists already",
}
_FILE_ERRORS = (ContractError, Conflict, Forbidden, LimitExceeded)
"""Errors of one file that need not concern the next one."""


@dataclass(frozen=True)
class UploadedFile:
    """A file that was uploaded."""

    file: str
    document_id: UUID
    version: int
    created: bool
    changed: bool


@dataclass(frozen=True)
class RefusedUpload:
    """A file that was refused, and why."""

    file: str
    error: str
    code: ExitCode


@docs.command()
async def upload(
    duly: Duly,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", exists=True, dir_okay=False, help="Select the files.", show_default=False
        ),
    ],
    principal: Principal,
    folder: TargetFolder = ROOT,
    metadata: MetadataOption = None,
    document: Annotated[
        UUID | None, typer.Option("--document", help="Add the file as a new version of this document.")
    ] = None,
    engine: Annotated[
        Literal["fast", "hires", "none"], typer.Option(help="Choose the extraction engine, or none.")
    ] = "fast",
) -> Output:
    """Add files as documents and extract their text.

    Content that exists already is not stored twice. Large files are sent in parts: after an interruption, the
    same command resumes.
    """
    if document is not None and (len(files) > 1 or metadata or folder != ROOT):
        raise typer.BadParameter(
            "a new version is one file, without folder and metadata", param_hint="--document"
        )
    options: dict[str, Any] = {
        "metadata": parse_metadata(metadata),
        "document_id": document,
        "engine": None if engine == "none" else engine,
        "node_id": await find_folder(duly.documents, principal, folder),
    }
    uploaded, refused = list[UploadedFile](), list[RefusedUpload]()
    for file in files:
        try:
            filed = await _upload(duly.documents, principal, file, options)
            uploaded.append(UploadedFile(str(file), *filed))
        except _FILE_ERRORS as error:
            if len(files) == 1:
                raise
            refused.append(RefusedUpload(str(file), str(error), exit_code(error)))
            typer.echo(f"error: {file}: {error}", err=True)
    return Output(
        {"documents": uploaded, "refused": refused},
        lambda: print_table(uploaded, _UPLOADED),
        refused[0].code if refused else ExitCode.OK,
    )


@docs.command(
    columns=columns(
        *("upload_id", "size"),
        received=lambda one: f"{one.received} of {-(-one.size // one.part_size)}",
        sha256="sha256",
        started="created_at",
    )
)
async def uploads(duly: Duly, principal: Principal) -> Rows:
    """List open uploads; the same `upload` command resumes one."""
    return {"uploads": await duly.documents.uploads.list(principal)}


@docs.command()
async def abandon(
    duly: Duly,
    upload: Annotated[UUID, argument("Select the upload by its id.", "UPLOAD")],
    principal: Principal,
) -> Output:
    """Discard an upload and its parts."""
    await duly.documents.uploads.abandon(principal, upload)
    return Output({"upload_id": upload, "abandoned": True}, "abandoned")


async def _upload(
    documents: Documents, principal: DocumentPrincipal, file: Path, options: dict[str, Any]
) -> FilingResult:
    """Add a file at once, or in parts if it is large."""
    size = (await asyncio.to_thread(os.stat, file)).st_size
    if size <= PART_SIZE:
        return await documents.add(principal, file.name, _chunks(file), **options)
    upload = await documents.uploads.begin(principal, await asyncio.to_thread(_sha256, file), size)
    if upload.upload_id is None:
        if upload.document_id is not None and options["document_id"] in (None, upload.document_id):
            existing = await documents.get(principal, upload.document_id)
            return FilingResult(existing.document_id, existing.version, created=False, changed=False)
        return await documents.add(principal, file.name, _chunks(file), **options)
    for part in upload.missing:
        chunks = _chunks(file, (part - 1) * upload.part_size, upload.part_size)
        await documents.uploads.put(principal, upload.upload_id, part, chunks)
    return await documents.uploads.finish(principal, upload.upload_id, file.name, **options)


async def _chunks(path: Path, start: int = 0, size: int | None = None) -> AsyncIterator[bytes]:
    """Yield a file in chunks, or a part of it."""
    left = size
    with await asyncio.to_thread(path.open, "rb") as file:
        file.seek(start)
        while chunk := await asyncio.to_thread(
            file.read, _CHUNK_SIZE if left is None else min(_CHUNK_SIZE, left)
        ):
            left = None if left is None else left - len(chunk)
            yield chunk


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
