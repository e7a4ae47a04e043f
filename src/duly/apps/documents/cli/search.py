"""`duly docs search`."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer
from rich.text import Text

from duly.app import Duly
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
from duly.apps.documents.cli.shared import run, visitor
from duly.apps.documents.search.models import Hit, SearchResult
from duly.cli.options import ActorName, AppName, AsJson, Org
from duly.cli.output import console, print_json


def search(
    query: Annotated[str, typer.Argument(help='Words; or with "a phrase", -not, OR.', show_default=False)],
    org: Org,
    folder: Within = None,
    document: Annotated[
        list[UUID] | None, typer.Option("--document", help="Only in this one; may be given again.")
    ] = None,
    doc_type: OfType = None,
    language: InLanguage = None,
    element: OfElement = None,
    page_from: PageFrom = None,
    page_to: PageTo = None,
    created_from: CreatedFrom = None,
    created_to: CreatedTo = None,
    metadata: Facts = None,
    group: Annotated[bool, typer.Option("--group", help="The best passage of each document.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many at most.")] = 10,
    offset: Annotated[int, typer.Option(min=0, help="After so many.")] = 0,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """The passages of documents that fit a query, the best first."""
    who = visitor(org, actor)
    chosen = filters(
        documents=document,
        doc_types=doc_type,
        languages=language,
        element_types=element,
        page_from=page_from,
        page_to=page_to,
        created_from=created_from,
        created_to=created_to,
        metadata=metadata,
    )

    async def find(duly: Duly) -> SearchResult:
        asked = await within(duly.documents, who, chosen, folder)
        return await duly.documents.search(who, query, asked, limit=limit, offset=offset, group=group)

    found = run(app, find)
    print_json(found) if as_json else _show(found, offset)


def _show(found: SearchResult, offset: int) -> None:
    screen = console()
    for word, instead in found.corrected.items():
        screen.print(_safe(f"{word}: nothing has it; looked for {', '.join(instead)}"))
    for number, hit in enumerate(found.hits, offset + 1):
        screen.print(_title(number, hit))
        for fragment in hit.fragments:
            parts = [_safe(piece.text, "bold" if piece.hit else "") for piece in fragment]
            screen.print(Text("   ").append_text(Text().join(parts)))
    screen.print(_safe(f"{found.total}{'' if found.exact else ' or more'} found"))
    if found.more:
        screen.print(_safe(f"there is more: --offset {offset + len(found.hits)}"))


def _title(number: int, hit: Hit) -> Text:
    page = f", page {hit.page}" if hit.page else ""
    return _safe(f"{number}. {hit.name}{page}  {hit.document_id}")


def _safe(said: str, style: str = "") -> Text:
    """Words of documents: neither markup nor anything that a terminal would obey; a line is a line."""
    plain = said.replace("\n", " ").replace("\t", " ")
    return Text("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in plain), style)
