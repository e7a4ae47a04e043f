"""`duly docs search`."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer
from rich.text import Text

from duly.app import Duly
from duly.apps.documents.command_group import Principal, docs
from duly.apps.documents.search.command_filters import FilterOptions, FolderFilter, filter_folders
from duly.apps.documents.search.models import Hit, SearchResult
from duly.cli.options import argument
from duly.cli.output import Output, console


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
