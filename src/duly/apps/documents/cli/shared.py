"""What the commands about documents share."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar
from uuid import UUID

import typer

from duly.app import Duly
from duly.apps.documents.errors import UnknownFolder
from duly.apps.documents.extraction.service import JOB_TYPE
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.cli.app_loader import find
from duly.cli.options import acting
from duly.core.errors import ContractError, SchemaMismatch
from duly.jobs.request_context import context

if TYPE_CHECKING:
    from duly.apps.documents.service import Documents

T = TypeVar("T")
ROOT = "/"
DocumentId = Annotated[UUID, typer.Argument(metavar="DOCUMENT", help="Its id.", show_default=False)]
FolderPath = Annotated[str, typer.Argument(metavar="FOLDER", help="Its path or its id.", show_default=False)]
IntoFolder = Annotated[str, typer.Option("--folder", help="The path or the id of the folder; / is the root.")]


def visitor(org: UUID, actor: str | None) -> DocumentPrincipal:
    """Who asks."""
    return DocumentPrincipal(org, acting(actor))


def run(name: str | None, work: Callable[[Duly], Awaitable[T]]) -> T:
    """Do one thing with the application, documents included, and close it."""
    app = find(name)
    was_there = JOB_TYPE in app.registry
    app.include_documents()

    async def once() -> T:
        async with app:
            return await work(app)

    with context(request_id=f"cli-{uuid.uuid4().hex}"):
        try:
            return asyncio.run(once())
        except SchemaMismatch as error:
            if not was_there and "are missing" in error.message:
                error.fix = "call app.include_documents() in your application, then run `duly migrate`"
            raise


async def folder_id(documents: Documents, who: DocumentPrincipal, said: str) -> UUID | None:
    """The folder that was named by its path or its id; None is the root."""
    path = said.strip(ROOT)
    if not path:
        return None
    folders = await documents.folders.list(who)
    found = [node.node_id for node in folders if path in (node.path, str(node.node_id))]
    if len(found) > 1:
        raise ContractError(
            "two have this path", field="folder", fix="name it by its id: see `duly docs folders`"
        )
    if not found:
        raise _unknown()
    return found[0]


async def in_folder(documents: Documents, who: DocumentPrincipal, said: str) -> UUID:
    """The same where the root is none."""
    found = await folder_id(documents, who, said)
    if found is None:
        raise _unknown()
    return found


def _unknown() -> UnknownFolder:
    return UnknownFolder("no such folder", field="folder", fix="see `duly docs folders`, or ask for access")
