"""`duly docs search`, and the filters that it shares with `duly docs export`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer
from pydantic import ValidationError
from rich.text import Text

from duly.app import Duly
from duly.apps.documents.command_group import Principal, docs, find_folder, parse_metadata
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.search.models import Filters, Hit, SearchResult
from duly.cli.options import Depends, argument, time_option
from duly.cli.output import Output, console

if TYPE_CHECKING:
    from duly.apps.documents.service import Documents

FolderFilter = Annotated[
    list[str] | None, typer.Option("--folder", help="Filter by folder and those below; repeatable.")
]


def _filters(
    doc_type: Annotated[
        list[str] | None, typer.Option("--type", help="Filter by type, as in invoice; repeatable.")
    ] = None,
    language: Annotated[
        list[str] | None, typer.Option("--language", help="Filter by language, as in de; repeatable.")
    ] = None,
    element: Annotated[
        list[str] | None, typer.Option("--element", help="Filter by element, as in Table; repeatable.")
    ] = None,
    page_from: Annotated[int | None, typer.Option(min=1, help="Select passages from this page on.")] = None,
    page_to: Annotated[int | None, typer.Option(min=1, help="Select passages up to this page.")] = None,
    created_from: Annotated[
        datetime | None, time_option("--created-from", "Select documents created at this time or later.")
    ] = None,
    created_to: Annotated[
        datetime | None, time_option("--created-to", "Select documents created before this time.")
    ] = None,
    metadata: Annotated[
        list[str] | None, typer.Option("--metadata", help="Filter by NAME=VALUE; repeatable.")
    ] = None,
) -> Filters:
    values = {
        "doc_types": doc_type,
        "languages": language,
        "element_types": element,
        "page_from": page_from,
        "page_to": page_to,
        "created_from": created_from,
        "created_to": created_to,
        "metadata": parse_metadata(metadata),
    }
    try:
        return Filters.model_validate({name: value for name, value in values.items() if value})
    except ValidationError as error:
        raise typer.BadParameter(error.errors()[0]["msg"]) from None


FilterOptions = Annotated[Filters, Depends(_filters)]


async def filter_folders(
    documents: Documents, principal: DocumentPrincipal, filters: Filters, folders: Sequence[str] | None
) -> Filters:
    """Return the filters with folders; the root selects all of them."""
    ids: list[UUID | None] = [await find_folder(documents, principal, folder) for folder in folders or ()]
    nodes = () if None in ids else tuple(filter(None, ids))
    return filters.model_copy(update={"nodes": nodes}) if nodes else filters


@docs.command()
async def search(
    duly: Duly,
    query: Annotated[str, argument('Select passages by words; or with "a phrase", -not, OR.')],
    principal: Principal,
    filters: FilterOptions,
    folder: FolderFilter = None,
    document: Annotated[
        list[UUID] | None, typer.Option("--document", help="Filter by document; repeatable.")
    ] = None,
    group: Annotated[
        bool, typer.Option("--group", help="Show only the best passage of each document.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Limit the number of results.")] = 10,
    offset: Annotated[int, typer.Option(min=0, help="Skip this many results.")] = 0,
) -> Output:
    """List the passages that match a query, best first."""
    filters = await filter_folders(duly.documents, principal, filters, folder)
    if document:
        filters = filters.model_copy(update={"documents": tuple(document)})
    found = await duly.documents.search(principal, query, filters, limit=limit, offset=offset, group=group)
    return Output(found, lambda: _print(found, offset))


def _print(found: SearchResult, offset: int) -> None:
    screen = console()
    for word, replacements in found.corrected.items():
        screen.print(_safe(f"{word}: no match; searched for {', '.join(replacements)}"))
    for number, hit in enumerate(found.hits, offset + 1):
        screen.print(_title(number, hit))
        for fragment in hit.fragments:
            parts = [_safe(part.text, "bold" if part.hit else "") for part in fragment]
            screen.print(Text("   ").append_text(Text().join(parts)))
    screen.print(_safe(f"{found.total}{'' if found.exact else ' or more'} found"))
    if found.more:
        screen.print(_safe(f"next page: --offset {offset + len(found.hits)}"))


def _title(number: int, hit: Hit) -> Text:
    page = f", page {hit.page}" if hit.page else ""
    return _safe(f"{number}. {hit.name}{page}  {hit.document_id}")


def _safe(text: str, style: str = "") -> Text:
    """Return text of a document on one line, without markup and control characters."""
    plain = text.replace("\n", " ").replace("\t", " ")
    return Text("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in plain), style)
