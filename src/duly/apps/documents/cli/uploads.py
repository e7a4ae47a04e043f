"""`duly docs`: large files go in parts, and go on where they were after a break."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from duly.apps.documents.cli.shared import run, visitor
from duly.apps.documents.library.filing import FilingResult
from duly.apps.documents.uploads.service import PART_SIZE
from duly.cli.options import ActorName, AppName, AsJson, Org
from duly.cli.output import Columns, print_json, print_table

if TYPE_CHECKING:
    from duly.apps.documents.folders.access import DocumentPrincipal
    from duly.apps.documents.service import Documents

_PIECE = 1024 * 1024
_COLUMNS: Columns = {
    "upload": "upload_id",
    "size": "size",
    "received": lambda one: f"{one.received} of {-(-one.size // one.part_size)}",
    "sha256": "sha256",
    "begun": "created_at",
}


async def kept(documents: Documents, who: DocumentPrincipal, file: Path, **how: Any) -> FilingResult:
    """A file as a document: at once, or in parts if it is a large one."""
    size = (await asyncio.to_thread(os.stat, file)).st_size
    if size <= PART_SIZE:
        return await documents.add(who, file.name, pieces(file), **how)
    begun = await documents.uploads.begin(who, await asyncio.to_thread(_hash, file), size)
    if begun.upload_id is None:
        if how["document_id"] in (None, begun.document_id):
            assert begun.document_id is not None
            there = await documents.get(who, begun.document_id)
            return FilingResult(there.document_id, there.version, created=False, changed=False)
        return await documents.add(who, file.name, pieces(file), **how)
    for part in begun.missing:
        begin = (part - 1) * begun.part_size
        await documents.uploads.put(who, begun.upload_id, part, pieces(file, begin, begun.part_size))
    return await documents.uploads.finish(who, begun.upload_id, file.name, **how)


async def pieces(path: Path, begin: int = 0, most: int | None = None) -> AsyncIterator[bytes]:
    """A file as it is read, or a part of it."""
    left = most
    with await asyncio.to_thread(path.open, "rb") as file:
        file.seek(begin)
        while piece := await asyncio.to_thread(file.read, _PIECE if left is None else min(_PIECE, left)):
            left = None if left is None else left - len(piece)
            yield piece


def _hash(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def uploads(org: Org, actor: ActorName = None, app: AppName = None, as_json: AsJson = False) -> None:
    """The uploads that were begun and not finished; the same `upload` again goes on with one."""
    found = run(app, lambda duly: duly.documents.uploads.list(visitor(org, actor)))
    print_json({"uploads": found}) if as_json else print_table(found, _COLUMNS)


def abandon(
    upload: Annotated[UUID, typer.Argument(metavar="UPLOAD", help="Its id.", show_default=False)],
    org: Org,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Give an upload up; its parts are cleared away."""
    run(app, lambda duly: duly.documents.uploads.abandon(visitor(org, actor), upload))
    print_json({"upload_id": upload, "abandoned": True}) if as_json else print("abandoned")
