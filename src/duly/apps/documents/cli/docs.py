"""`duly docs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from duly.app import Duly
from duly.apps.documents.cli import (
    connectors as docs_connectors,
)
from duly.apps.documents.cli import (
    exports as docs_exports,
)
from duly.apps.documents.cli import (
    extraction as docs_reading,
)
from duly.apps.documents.cli import (
    files as docs_files,
)
from duly.apps.documents.cli import (
    folders as docs_folders,
)
from duly.apps.documents.cli import (
    search as docs_search,
)
from duly.apps.documents.cli import (
    types as docs_types,
)
from duly.apps.documents.cli import (
    uploads as docs_uploads,
)
from duly.apps.documents.cli.files import facts
from duly.apps.documents.cli.shared import DocumentId, FolderPath, folder_id, run, visitor
from duly.apps.documents.models import Document, DocumentStatus, Extraction, Version
from duly.cli.options import ActorName, After, AppName, AsJson, Org, Reason, Size
from duly.cli.output import Columns, print_facts, print_json, print_table

if TYPE_CHECKING:
    from duly.apps.documents.library.service import DocumentPage

group = typer.Typer(help="Documents of an org.", no_args_is_help=True, rich_markup_mode=None)
group.command()(docs_files.upload)

_COLUMNS: Columns = {
    "document": "document_id",
    "name": "name",
    "version": "version",
    "size": "size",
    "status": "status",
    "pages": "page_count",
    "type": "doc_type",
    "updated": "updated_at",
}
_MOST = 500
_FACTS = tuple(Document.model_fields)
_VERSIONS: Columns = {
    "version": "version",
    "file": "file_name",
    "size": "size",
    "sha256": "sha256",
    "by": "created_by",
    "created": "created_at",
}
_EXTRACTIONS: Columns = {
    "extraction": "extraction_id",
    "version": "version",
    "engine": "engine",
    "status": "status",
    "pages": "actual_pages",
    "cents": "actual_cost_cents",
    "warnings": "warnings",
    "error": "error_code",
    "why": "error_message",
    "job": "job_id",
}


@group.command("list")
def list_documents(
    org: Org,
    folder: Annotated[
        str | None, typer.Option("--folder", help="Only of this folder, by path or id; / is the root.")
    ] = None,
    doc_type: Annotated[str | None, typer.Option("--type", help="Only of this type, as invoice.")] = None,
    status: Annotated[DocumentStatus | None, typer.Option(help="Only in this status.")] = None,
    limit: Size = 50,
    after: After = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """The documents that whoever asks may see, the newest first."""
    who = visitor(org, actor)

    async def find(duly: Duly) -> DocumentPage:
        node_id = None if folder is None else await folder_id(duly.documents, who, folder)
        place: dict[str, Any] = {"node_id": node_id, "in_root": folder is not None and node_id is None}
        return await duly.documents.list(
            who, **place, doc_type=doc_type, status=status, limit=limit, after=after
        )

    page = run(app, find)
    if as_json:
        print_json({"documents": page.documents, "after": page.after})
    else:
        print_table(page.documents, _COLUMNS, after=page.after)


@group.command()
def show(
    document: DocumentId, org: Org, actor: ActorName = None, app: AppName = None, as_json: AsJson = False
) -> None:
    """One document, the files that it has been, and what was read out of it; the newest 500 of each."""
    who = visitor(org, actor)

    async def find(duly: Duly) -> tuple[Document, list[Version], list[Extraction]]:
        found, documents = await duly.documents.get(who, document), duly.documents
        return (
            found,
            [*await documents.versions(who, document, limit=_MOST)],
            [*await documents.extractions(who, document, limit=_MOST)],
        )

    found, versions, extractions = run(app, find)
    if as_json:
        print_json({"document": found, "versions": versions, "extractions": extractions})
        return
    print_facts(found, _FACTS)
    print_table(versions, _VERSIONS)
    if extractions:
        print_table(extractions, _EXTRACTIONS)


@group.command()
def move(
    document: DocumentId,
    folder: FolderPath,
    org: Org,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Put a document into another folder, / for the root; also under another name."""
    who = visitor(org, actor)

    async def change(duly: Duly) -> Document:
        node_id = await folder_id(duly.documents, who, folder)
        return await duly.documents.change(who, document, name=name, move_to=node_id, moves=True)

    _show(run(app, change), as_json)


@group.command()
def change(
    document: DocumentId,
    org: Org,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    folder: Annotated[
        str | None, typer.Option("--folder", help="Another folder, by path or id; / is the root.")
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", help="As in year=2026, in place of all it has; may be given again."),
    ] = None,
    no_metadata: Annotated[bool, typer.Option("--no-metadata", help="It has none any more.")] = False,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Give a document another name, folder or metadata; what is not said stays."""
    if name is None and folder is None and not metadata and not no_metadata:
        raise typer.BadParameter("nothing is to be different", param_hint="--name, --folder, --metadata")
    if metadata and no_metadata:
        raise typer.BadParameter("either --metadata or --no-metadata", param_hint="--metadata")
    who = visitor(org, actor)
    said = facts(metadata) if metadata or no_metadata else None

    async def make(duly: Duly) -> Document:
        place = None if folder is None else await folder_id(duly.documents, who, folder)
        moves = folder is not None
        return await duly.documents.change(
            who, document, name=name, move_to=place, moves=moves, metadata=said
        )

    _show(run(app, make), as_json)


@group.command()
def delete(
    document: DocumentId,
    org: Org,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Delete a document and everything that was made of it."""
    run(app, lambda duly: duly.documents.remove(visitor(org, actor), document, reason=reason))
    print_json({"document_id": document, "deleted": True}) if as_json else print("deleted")


group.command()(docs_files.download)
group.command()(docs_uploads.uploads)
group.command()(docs_uploads.abandon)
group.command()(docs_folders.folders)
group.command()(docs_folders.mkdir)
group.command()(docs_folders.mvdir)
group.command()(docs_folders.rmdir)
group.command()(docs_folders.grants)
group.command()(docs_folders.grant)
group.command()(docs_search.search)
group.command()(docs_reading.extract)
group.command()(docs_reading.text)
group.command()(docs_reading.passages)
group.command()(docs_types.classify)
group.command()(docs_types.why)
group.command()(docs_types.review)
group.command()(docs_types.confirm)
group.command()(docs_types.train)
group.command()(docs_types.evaluate)
group.command()(docs_types.models)
group.command()(docs_types.filing)
group.command()(docs_types.belongs)
group.command()(docs_connectors.connectors)
group.command()(docs_connectors.connect)
group.command()(docs_connectors.enable)
group.command()(docs_connectors.disable)
group.command()(docs_connectors.disconnect)
group.command("import")(docs_connectors.bring_in)
group.command("export")(docs_exports.export)


def _show(document: Document, as_json: bool) -> None:
    print_json(document) if as_json else print_facts(document, _FACTS)
